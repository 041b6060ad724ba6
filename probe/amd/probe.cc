#include "probe/amd/probe.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

#include "probe/amd/amdgpu.h"
#include "probe/amd/cards.h"
#include "probe/amd/processes.h"
#include "probe/sysfs.h"

namespace remuda::probe {
namespace {

using amd::Card;
using amd::KfdNode;

constexpr const char* kVendor = "AMD";
constexpr std::array kCutModes{"DPX", "TPX", "QPX", "CPX"};

Missing unsupported(std::string sentence) { return {MissingReason::unsupported, std::move(sentence)}; }

void fill_unread(Device& device, const Missing& reason) {
  const auto profile = device.profile;
  sysfs::FillUnread fill{reason};
  Device::fields(device, fill);
  device.profile = profile;
}

/// Everything that one find() reads.
struct Snapshot {
  std::string pci_folder;
  amd::Kfd kfd;
  Reading<std::vector<amd::KfdProcess>> processes;

  Reading<std::vector<Process>> users_of(const std::vector<const probe::amd::KfdNode*>& nodes) const {
    std::set<uint64_t> gpu_ids;
    for (const probe::amd::KfdNode* node : nodes) gpu_ids.insert(node->gpu_id);
    gpu_ids.erase(0);
    if (gpu_ids.empty()) return unsupported("the driver reports no gpu_id, by which it counts processes");
    return sysfs::map(processes, [&](const auto& all) { return amd::users_of(gpu_ids, all); });
  }
};

Reading<std::string> read_uuid(const std::string& folder, const probe::amd::Card& card) {
  const auto text = sysfs::read(folder + "/unique_id");
  if (text.has_value()) {
    const auto id = amd::parse_unique_id(text.value());
    if (id) return amd::uuid_text(*id);
  }
  const uint64_t id = amd::unique_id_of(card);
  return id ? Reading(amd::uuid_text(id)) : unsupported("the driver reports no unique id of this GPU");
}

Reading<int> read_numa_node(const std::string& folder, const Snapshot& machine, const probe::amd::Card& card) {
  constexpr int kMost = 65535;
  auto node = sysfs::to_int(sysfs::read_integer(folder + "/numa_node", 0, kMost));
  if (node.has_value()) return node;
  const auto nearest = amd::nearest_numa_node(machine.kfd, *card.nodes.front());
  return nearest ? Reading(*nearest) : node;
}

Device read_gpu(const Snapshot& machine, const probe::amd::Card& card) {
  const std::string folder = machine.pci_folder + "/" + card.pci;
  const bool is_there = !card.pci.empty() && sysfs::exists(folder);
  Device gpu;
  gpu.id = card.id;
  gpu.kind = DeviceKind::gpu;
  gpu.vendor = kVendor;
  if (!card.pci.empty()) gpu.pci = card.pci;
  if (is_there) amd::read_amdgpu(folder, gpu);
  const auto mode = amd::read_compute_partition(folder);
  gpu.partitioned = card.nodes.size() > 1 || std::ranges::count(kCutModes, mode.value_or("")) > 0;
  gpu.uuid = read_uuid(folder, card);
  gpu.numa_node = read_numa_node(folder, machine, card);
  gpu.status.processes = machine.users_of(card.nodes);
  amd::read_card(card, gpu);
  if (card.pci.empty())
    fill_unread(gpu, unsupported(fmt::format("the driver reports no PCI address of {}", card.id)));
  else if (!is_there)
    fill_unread(gpu, {MissingReason::lost, fmt::format("{} is no longer on the PCI bus", card.pci)});
  return gpu;
}

Device read_partition(const Snapshot& machine, const probe::amd::KfdNode& node, const Device& gpu) {
  Device part;
  part.id = amd::node_id(node);
  part.kind = DeviceKind::partition;
  part.vendor = kVendor;
  part.model = gpu.model.empty() ? fmt::format("{} {}", kVendor, node.target().value_or("GPU")) : gpu.model;
  part.parent = gpu.id;
  part.pci = gpu.pci, part.numa_node = gpu.numa_node;
  if (gpu.pci.has_value()) part.profile = amd::read_compute_partition(machine.pci_folder + "/" + gpu.pci.value());
  const uint64_t id = amd::unique_id_of({"", "", {&node}});
  part.uuid = id ? Reading(amd::uuid_text(id)) : unsupported("the driver reports no unique id of this partition");
  amd::read_card({"", "", {&node}}, part);
  if (node.memory_used_bytes) part.status.memory_used_bytes = *node.memory_used_bytes;
  part.status.processes = machine.users_of({&node});
  fill_unread(part, unsupported("the driver reports this of the whole GPU only"));
  return part;
}

/// A UUID must name one device: where several report the same (partitions that carry their GPU's, boards with the same
/// number), only the first keeps it.
void keep_uuids_unique(std::vector<Device>& devices) {
  std::set<std::string> known;
  for (Device& device : devices)
    if (device.uuid.has_value() && !known.insert(device.uuid.value()).second)
      device.uuid = unsupported(fmt::format("another device has the same, {}", device.uuid.value()));
}

class AmdProbe final : public Probe {
 public:
  explicit AmdProbe(AmdOptions options) : options_(std::move(options)), processes_(options_.proc) {}

  const char* name() const override { return "amd"; }
  std::string_view vendor() const override { return kVendor; }

  std::optional<std::string> unviable() override {
    const std::string kfd = options_.sysfs + "/class/kfd", module = options_.sysfs + "/module/amdgpu";
    if (sysfs::exists(kfd + "/kfd/topology/nodes")) return std::nullopt;
    if (sysfs::exists(module)) return fmt::format("the amdgpu driver shows no compute devices ({} is not there)", kfd);
    return fmt::format("the amdgpu driver is not loaded ({} is not there)", module);
  }

  Result<Finding> find() override {
    const Snapshot machine{options_.sysfs + "/bus/pci/devices", amd::read_kfd(options_.sysfs),
                           amd::read_processes(options_.sysfs, processes_)};
    const std::vector<probe::amd::Card> cards = amd::cards_of(machine.kfd);
    Finding finding;
    std::vector<Device> partitions;
    std::map<int, amd::Place> places;
    for (size_t i = 0; i < cards.size(); ++i) {
      const Device& gpu = finding.devices.emplace_back(read_gpu(machine, cards[i]));
      const bool is_cut = gpu.partitioned.value_or(false);
      for (const probe::amd::KfdNode* node : cards[i].nodes) {
        if (is_cut) partitions.push_back(read_partition(machine, *node, gpu));
        places[node->number] = {is_cut ? partitions.back().id : gpu.id, i, is_cut};
      }
    }
    std::ranges::move(partitions, std::back_inserter(finding.devices));
    keep_uuids_unique(finding.devices);
    finding.links = amd::links_of(machine.kfd, places);
    finding.drivers.push_back(read_driver());
    finding.reason = machine.kfd.reason;
    return finding;
  }

 private:
  /// A driver without a version of its own came with the kernel, and has the kernel's version.
  Driver read_driver() const {
    Driver driver{kVendor};
    driver.version = sysfs::read_word(options_.sysfs + "/module/amdgpu/version");
    if (!driver.version.has_value()) driver.version = sysfs::read_word(options_.proc + "/sys/kernel/osrelease");
    driver.module_version = driver.version;
    return driver;
  }

  const AmdOptions options_;
  KnownProcesses processes_;
};

}  // namespace

std::unique_ptr<Probe> make_amd_probe(AmdOptions options) { return std::make_unique<AmdProbe>(std::move(options)); }

}  // namespace remuda::probe
