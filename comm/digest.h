// A digest of what all ranks pass to a call, to notice where they differ.
#pragma once

#include <cstdint>
#include <vector>

namespace remuda::comm {

/// Differs, almost always, for other numbers.
template <typename T>
uint32_t digest_of(const std::vector<T>& numbers) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, a word at a time
  for (const T number : numbers) hash = (hash ^ static_cast<uint64_t>(number)) * 0x100000001b3;
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

}  // namespace remuda::comm
