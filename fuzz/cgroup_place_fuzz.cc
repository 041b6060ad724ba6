// Any two texts, parted by the first zero byte, are at most one place in a tree of each version, inside of its mount.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "confine/cgroup_place.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(text.find('\0'), size);
  const auto places = remuda::confine::cgroup_places(text.substr(0, cut), text.substr(cut < size ? cut + 1 : size));
  REMUDA_CHECK(places.size() <= 2, "there are two versions");
  REMUDA_CHECK(places.size() < 2 || places[0].version > places[1].version, "the newer one comes first");
  for (const auto& place : places) {
    REMUDA_CHECK(place.own.starts_with(place.mount), "a cgroup is inside of its tree");
    REMUDA_CHECK(place.own == place.mount || place.own[place.mount.size()] == '/', "and below it");
  }
  return 0;
}
