#include "tests/nvml/faults.h"

#include <charconv>
#include <fmt/format.h>

#include "base/text.h"

namespace remuda::tests::nvml {
namespace {

bool read_number(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 0;
}

bool read_xid(std::string_view text, std::map<int, int>& xid) {
  const size_t colon = text.find(':');
  int gpu = 0;
  return colon != std::string_view::npos && read_number(text.substr(0, colon), gpu) &&
         read_number(text.substr(colon + 1), xid[gpu]);
}

bool read_gpu(std::string_view word, int gpu, Faults& faults) {
  for (auto [known, set] : {std::pair{"lost", &faults.lost}, std::pair{"denied", &faults.denied},
                            std::pair{"hang", &faults.hang}, std::pair{"crash", &faults.crash}})
    if (word == known) return set->insert(gpu), true;
  return false;
}

bool read_entry(std::string_view entry, Faults& faults) {
  if (entry == "mismatch") return faults.init = kVersionMismatch, true;
  const size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view word = entry.substr(0, equals), value = entry.substr(equals + 1);
  if (word == "xid") return read_xid(value, faults.xid);
  int number = 0;
  if (!read_number(value, number)) return false;
  if (word == "slow-init") return faults.slow_init_ms = number, true;
  if (word == "die-at") return faults.die_at = number, true;
  if (word == "stuck") return faults.stuck = number, true;
  if (word == "taken") return faults.taken = number, true;
  if (word == "no-init") return faults.init = static_cast<Code>(number), true;
  return read_gpu(word, number, faults);
}

}  // namespace

Result<Faults> parse_faults(std::string_view text) {
  Faults faults;
  if (text.empty()) return faults;
  for (const std::string& entry : split(text, ','))
    if (!read_entry(entry, faults))
      return usage_error(fmt::format("'{}' is no fault of the test library; tests/nvml/faults.h lists them", entry));
  return faults;
}

}  // namespace remuda::tests::nvml
