// The devices that a kubelet gives to pods, from the files that it keeps of them: its PodResources service speaks gRPC,
// which would cost the agent a library larger than itself.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"
#include "pool/job.h"

namespace remuda::cluster {

struct KubeletPlaces {
  std::string checkpoint = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
  std::string pods = "/var/log/pods";
  std::string cgroups = "/sys/fs/cgroup";
};

/// All devices that it gives out, also those that no pod has. None where no kubelet has run since this machine started:
/// its files outlast it. Where the checkpoint cannot be read, all GPUs are taken to be its.
std::vector<pool::Allocation> kubelet_allocations(const Inventory& inventory, const KubeletPlaces& places = {});

}  // namespace remuda::cluster
