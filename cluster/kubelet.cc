#include "cluster/kubelet.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>

#include "base/file.h"
#include "cluster/kubelet_text.h"

namespace remuda::cluster {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostPods = 100'000;

/// The cgroups of pods, which it makes when it starts: "kubepods.slice", "kubepods", or in a tree of version 1.
bool has_run(const std::string& cgroups) {
  const auto is_there = [](const std::string& folder) {
    std::error_code error;
    return fs::is_directory(folder + "/kubepods.slice", error) || fs::is_directory(folder + "/kubepods", error);
  };
  return is_there(cgroups) || is_there(cgroups + "/cpu,cpuacct") || is_there(cgroups + "/cpu");
}

std::map<std::string, PodName> pod_names(const std::string& folder) {
  std::map<std::string, PodName> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && names.size() < kMostPods;
       entry.increment(error))
    if (const auto pod = parse_pod_folder(entry->path().filename().string())) names[pod->uid] = *pod;
  return names;
}

/// Plugins name devices by UUID or PCI address; "::2" is one of several shares of a device.
const Device* find(const Inventory& inventory, const std::string& name) {
  const std::string id = name.substr(0, name.find("::"));
  const auto found = std::ranges::find_if(inventory.devices, [&](const Device& device) {
    return device.id == id || device.uuid.value_or("") == id || (!id.empty() && device.pci.value_or("") == id);
  });
  return found == inventory.devices.end() ? nullptr : &*found;
}

pool::Allocation allocation_of(const Device& device) {
  return {.device = device.id, .manager = "Kubernetes", .instead = "a pod (kubectl)"};
}

/// A pod may have several shares of the device, and of several containers.
void add_pod(const PodDevices& pod, const std::map<std::string, PodName>& names, pool::Allocation& allocation) {
  const auto known = names.find(pod.pod);
  pool::Pod own{.uid = pod.pod, .container = pod.container};
  if (known != names.end()) own.name_space = known->second.name_space, own.name = known->second.name;
  const auto is_own = [&](const pool::Pod& one) { return one.uid == own.uid; };
  if (std::ranges::none_of(allocation.pods, is_own))
    allocation.holder += fmt::format("{}pod {}", allocation.holder.empty() ? "" : ", ",
                                     own.name.empty() ? own.uid : own.name_space + "/" + own.name);
  if (std::ranges::find(allocation.pods, own) == allocation.pods.end()) allocation.pods.push_back(std::move(own));
}

}  // namespace

std::vector<pool::Allocation> kubelet_allocations(const Inventory& inventory, const KubeletPlaces& places) {
  std::error_code error;
  if (!fs::exists(places.checkpoint, error) || !has_run(places.cgroups)) return {};
  std::map<std::string, pool::Allocation> of_device;
  const auto text = read_text(places.checkpoint);
  const auto checkpoint = text ? parse_device_checkpoint(*text, places.checkpoint) : tl::unexpected(text.error());
  if (!checkpoint)
    for (const Device& device : inventory.devices)
      if (device.kind == DeviceKind::gpu) of_device.emplace(device.id, allocation_of(device));
  if (checkpoint) {
    for (const std::string& name : checkpoint->registered)
      if (const Device* device = find(inventory, name)) of_device.emplace(device->id, allocation_of(*device));
    const auto names = pod_names(places.pods);
    for (const PodDevices& pod : checkpoint->pods)
      for (const std::string& name : pod.devices)
        if (const Device* device = find(inventory, name))
          add_pod(pod, names, of_device.emplace(device->id, allocation_of(*device)).first->second);
  }
  std::vector<pool::Allocation> allocations;
  for (auto& [_, allocation] : of_device) allocations.push_back(std::move(allocation));
  return allocations;
}

}  // namespace remuda::cluster
