#include "confine/maker.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace remuda::confine {

Maker maker_of(const Device& device) {
  std::string vendor = device.vendor;
  std::ranges::transform(vendor, vendor.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto has = [&](const char* name) { return vendor.find(name) != std::string::npos; };
  if (has("nvidia")) return Maker::nvidia;
  return has("amd") || has("advanced micro") ? Maker::amd : Maker::other;
}

}  // namespace remuda::confine
