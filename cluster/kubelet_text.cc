#include "cluster/kubelet_text.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace remuda::cluster {
namespace {

constexpr size_t kMostListed = 4096;  ///< of devices and of entries: no machine has as many

const Json* member(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() ? nullptr : &*found;
}

std::string text_of(const Json& json, const char* key) {
  const Json* text = member(json, key);
  return text && text->is_string() ? printable(text->get<std::string>()) : "";
}

void add_ids(const Json& list, std::vector<std::string>& ids) {
  if (!list.is_array()) return;
  for (const Json& id : list)
    if (id.is_string() && ids.size() < kMostListed) ids.push_back(printable(id.get<std::string>()));
}

/// A list, or lists by NUMA node.
void add_all_ids(const Json* ids, std::vector<std::string>& all) {
  if (!ids) return;
  add_ids(*ids, all);
  if (ids->is_object())
    for (const Json& of_node : *ids) add_ids(of_node, all);
}

}  // namespace

Result<DeviceCheckpoint> parse_device_checkpoint(std::string_view text, std::string_view where) {
  REMUDA_ASSIGN(const Json json, parse_json(text, where));
  const Json* data = member(json, "Data");
  if (!data || !data->is_object())
    return failed(fmt::format("{} is no checkpoint of a kubelet's devices: it has no object Data", where));
  DeviceCheckpoint checkpoint;
  if (const Json* registered = member(*data, "RegisteredDevices"); registered && registered->is_object())
    for (const Json& ids : *registered) add_ids(ids, checkpoint.registered);
  const Json* entries = member(*data, "PodDeviceEntries");
  if (!entries || !entries->is_array()) return checkpoint;
  for (const Json& entry : *entries) {
    if (checkpoint.pods.size() == kMostListed) break;
    PodDevices pod{text_of(entry, "PodUID"), text_of(entry, "ContainerName"), text_of(entry, "ResourceName"), {}};
    add_all_ids(member(entry, "DeviceIDs"), pod.devices);
    if (!pod.devices.empty()) checkpoint.pods.push_back(std::move(pod));
  }
  return checkpoint;
}

std::optional<PodName> parse_pod_folder(std::string_view folder) {
  const auto parts = split(std::string(folder), '_');
  if (parts.size() != 3 || std::ranges::any_of(parts, &std::string::empty)) return std::nullopt;
  return PodName{printable(parts[2]), printable(parts[0]), printable(parts[1])};
}

}  // namespace remuda::cluster
