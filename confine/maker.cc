#include "confine/maker.h"

#include <algorithm>
#include <string>

#include "base/letter_case.h"

namespace remuda::confine {

Maker maker_of(const Device& device) {
  const std::string vendor = lower(device.vendor);
  const auto has = [&](const char* name) { return vendor.find(name) != std::string::npos; };
  if (has("nvidia")) return Maker::nvidia;
  return has("amd") || has("advanced micro") ? Maker::amd : Maker::other;
}

}  // namespace remuda::confine
