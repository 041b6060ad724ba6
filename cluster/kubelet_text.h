// What a kubelet keeps in files of the devices that it has given to pods. Pure readers of texts that may be anything.
//
// Sources: kubernetes/pkg/kubelet/cm/devicemanager/checkpoint, 1.20 to 1.36; kubelet's folders of logs,
// NAMESPACE_NAME_UID.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace remuda::cluster {

struct PodDevices {
  std::string pod;                   ///< its UID
  std::string container;             ///< of it
  std::string resource;              ///< "nvidia.com/gpu"
  std::vector<std::string> devices;  ///< as their plugin names them
  bool operator==(const PodDevices&) const = default;
};

/// kubelet_internal_checkpoint.
struct DeviceCheckpoint {
  std::vector<PodDevices> pods;
  std::vector<std::string> registered;  ///< all devices that it gives out
  bool operator==(const DeviceCheckpoint&) const = default;
};

/// An error of one sentence, which names `where`, for a text that is none.
Result<DeviceCheckpoint> parse_device_checkpoint(std::string_view text, std::string_view where);

struct PodName {
  std::string uid, name_space, name;
};
/// Of a pod's folder of logs: "ns_name_uid".
std::optional<PodName> parse_pod_folder(std::string_view folder);

}  // namespace remuda::cluster
