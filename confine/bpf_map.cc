#include "confine/bpf_map.h"

#include <cerrno>
#include <fmt/format.h>

#include "confine/bpf.h"

namespace remuda::confine::bpf {
namespace {

bpf_attr element(int map, const void* key, const void* value = nullptr) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(map);
  attributes.key = pointer(key);
  attributes.value = pointer(value);
  return attributes;
}

}  // namespace

Result<Map> Map::make(const std::string& name, const MapShape& shape) {
  bpf_attr attributes{};
  attributes.map_type = shape.type;
  attributes.key_size = shape.key_bytes;
  attributes.value_size = shape.value_bytes;
  attributes.max_entries = shape.most_entries;
  attributes.map_flags = shape.flags;
  name.copy(attributes.map_name, kLongestName);
  Fd fd(static_cast<int>(call(BPF_MAP_CREATE, attributes)));
  if (!fd) return failed(fmt::format("the kernel makes no map for a device filter: {}", errno_text(errno)));
  return Map(std::move(fd), shape.most_entries);
}

std::optional<Map> Map::find(uint32_t id, const std::string& name, const MapShape& shape) {
  bpf_attr attributes{};
  attributes.map_id = id;
  Fd fd(static_cast<int>(call(BPF_MAP_GET_FD_BY_ID, attributes)));
  bpf_map_info info{};
  attributes = {};
  attributes.info.bpf_fd = static_cast<uint32_t>(fd.get());
  attributes.info.info_len = sizeof info;
  attributes.info.info = pointer(&info);
  if (!fd || call(BPF_OBJ_GET_INFO_BY_FD, attributes) != 0 || name != info.name) return std::nullopt;
  const MapShape found{info.type, info.key_size, info.value_size, info.max_entries, info.map_flags};
  return found == shape ? std::optional(Map(std::move(fd), shape.most_entries)) : std::nullopt;
}

bool Map::put(const void* key, const void* value) const {
  bpf_attr attributes = element(fd(), key, value);
  return call(BPF_MAP_UPDATE_ELEM, attributes) == 0;
}

void Map::erase(const void* key) const {
  bpf_attr attributes = element(fd(), key);
  (void)call(BPF_MAP_DELETE_ELEM, attributes);
}

bool Map::get(const void* key, void* value) const {
  bpf_attr attributes = element(fd(), key, value);
  return call(BPF_MAP_LOOKUP_ELEM, attributes) == 0;
}

bool Map::next_key(const void* key, void* next) const {
  bpf_attr attributes = element(fd(), key, next);
  return call(BPF_MAP_GET_NEXT_KEY, attributes) == 0;
}

}  // namespace remuda::confine::bpf
