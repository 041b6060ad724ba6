// Map: a table that BPF programs in the kernel and processes share. It lives as long as a program or a process has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace remuda::confine::bpf {

struct MapShape {
  uint32_t type = 0;  ///< BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_LRU_HASH
  uint32_t key_bytes = 0, value_bytes = 0, most_entries = 0;
  uint32_t flags = 0;  ///< BPF_F_NO_PREALLOC
  bool operator==(const MapShape&) const = default;
};

class Map {
 public:
  /// The error is a clause.
  static Result<Map> make(const std::string& name, const MapShape& shape);
  /// The map of that number in the kernel, where it has this name and shape.
  static std::optional<Map> find(uint32_t id, const std::string& name, const MapShape& shape);

  int fd() const { return fd_.get(); }
  /// False where there is no room.
  bool put(const void* key, const void* value) const;
  void erase(const void* key) const;
  /// False where the key is not there.
  bool get(const void* key, void* value) const;

  /// Those in it now. One that is put in or taken out meanwhile may be missing or not.
  template <typename Key>
  std::vector<Key> keys() const {
    static_assert(std::is_trivially_copyable_v<Key>);
    std::vector<Key> keys;
    Key next{};
    while (keys.size() < most_entries_ && next_key(keys.empty() ? nullptr : &keys.back(), &next)) keys.push_back(next);
    return keys;
  }

 private:
  Map(Fd fd, uint32_t most_entries) : fd_(std::move(fd)), most_entries_(most_entries) {}
  bool next_key(const void* key, void* next) const;

  Fd fd_;
  uint32_t most_entries_;
};

}  // namespace remuda::confine::bpf
