#include "base/env.h"

#include <array>
#include <cstdlib>
#include <fmt/format.h>

#include "base/number.h"

namespace remuda::env {
namespace {
#define REMUDA_LIST(word, name, meaning) word,
constexpr std::array kAll{REMUDA_VARIABLES(REMUDA_LIST)};
#undef REMUDA_LIST
}  // namespace

std::span<const Variable> all() { return kAll; }

std::optional<std::string> get(const Variable& variable) {
  const char* value = std::getenv(variable.name);
  if (!value) return std::nullopt;
  return value;
}

Result<int> get_int(const Variable& variable, int low, int high) {
  const std::string text = get(variable).value_or("");
  const auto value = parse_number<int>(text);
  if (!value || *value < low || *value > high)
    return usage_error(fmt::format("{} is '{}'; it must be a number from {} to {} ({})", variable.name, text, low, high,
                                   variable.meaning));
  return *value;
}

Result<int> get_master_port() {
  constexpr int kMost = 65535;
  REMUDA_ASSIGN(const int port, get_int(master_port, 1, kMost));
  if (get(use_agent_store) != "True") return port;
  return port < kMost ? port + 1 : port - 1;
}

}  // namespace remuda::env
