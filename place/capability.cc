#include "place/capability.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "base/letter_case.h"
#include "base/text.h"
#include "base/version_number.h"

namespace remuda::place {
namespace {

struct Precision {
  const char* name;
  const char* since;
  std::vector<std::string> targets;
};

// CUDA C++ Programming Guide 13, table of arithmetic throughput, and PTX ISA 9: first compute capability with the type.
// ROCm documentation, "Data types and precision support": matrix or packed instructions for the type, by target.
const std::vector<Precision>& precisions() {
  static const std::vector<Precision> known{
      {"fp16", "5.3", {"gfx9", "gfx10", "gfx11", "gfx12"}},
      {"bf16", "8.0", {"gfx908", "gfx90a", "gfx94", "gfx95", "gfx11", "gfx12"}},
      {"fp8", "8.9", {"gfx94", "gfx95", "gfx12"}},
      {"fp4", "10.0", {"gfx95"}},
  };
  return known;
}

/// "sm_80", "sm80", "sm_120a", "8.0" -> "8.0", "12.0"; empty when it is none of them.
std::string compute_capability(std::string text) {
  const bool is_sm = text.starts_with("sm");
  if (is_sm) {
    text.erase(0, text.starts_with("sm_") ? 3 : 2);
    if (text.ends_with('a') || text.ends_with('f')) text.pop_back();
    if (text.size() < 2 || text.size() > 3 || text.find('.') != std::string::npos) return "";
    text.insert(text.size() - 1, ".");
  }
  const bool has_dot = text.find('.') != std::string::npos;
  return has_dot && VersionNumber::parse(text) ? text : "";
}

}  // namespace

Result<Capability> Capability::parse(std::string_view asked) {
  Capability capability;
  capability.text_ = lower(asked);
  const std::string& text = capability.text_;
  for (const Precision& precision : precisions())
    if (text == precision.name) {
      capability.since_ = precision.since;
      capability.targets_ = precision.targets;
      return capability;
    }
  if (capability.since_ = compute_capability(text); !capability.since_.empty()) return capability;
  const bool is_name = std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0; });
  if (text.starts_with("gfx") && text.size() > 4 && is_name) {
    capability.targets_ = {text};
    capability.whole_ = true;
    return capability;
  }
  return usage_error(fmt::format(
      "'{}' is no capability; ask for fp16, bf16, fp8, fp4, a compute capability such as sm_80, or a target such as "
      "gfx90a",
      printable(asked)));
}

Reading<bool> Capability::of(const Device& device) const {
  const std::string target = lower(device.architecture.value_or(""));
  if (target.starts_with("gfx")) {
    const std::string name = target.substr(0, target.find(':'));
    return std::ranges::any_of(targets_,
                               [&](const std::string& t) { return whole_ ? name == t : name.starts_with(t); });
  }
  if (!device.compute_capability.has_value()) return device.compute_capability.missing();
  if (since_.empty()) return false;
  const auto has = VersionNumber::parse(device.compute_capability.value());
  if (!has) return Missing{MissingReason::unsupported, "its compute capability is not a number"};
  return *has >= *VersionNumber::parse(since_);
}

}  // namespace remuda::place
