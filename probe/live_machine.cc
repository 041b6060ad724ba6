#include "probe/live_machine.h"

#include <climits>
#include <unistd.h>

#include "base/clock.h"
#include "device/sane.h"
#include "probe/amd/probe.h"
#include "probe/cpu/probe.h"
#include "probe/merge.h"
#include "probe/nvml/probe.h"
#include "probe/pci/probe.h"
#include "probe/sysfs.h"

namespace remuda::probe {
namespace {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

/// A GPU that only its place on the PCI bus shows, although its maker has a probe, is one that nothing drives: that
/// probe says why, or lists others.
void explain_unlisted(const std::map<std::string_view, const ProbeReport*>& probes, std::vector<Device>& devices) {
  for (Device& device : devices) {
    const auto own = probes.find(device.vendor);
    if (device.kind != DeviceKind::gpu || own == probes.end() || device.memory_bytes.was_read()) continue;
    const ProbeReport& probe = *own->second;
    sysfs::FillUnread fill{{MissingReason::no_driver, probe.devices == 0 && !probe.reason.empty()
                                                          ? probe.reason
                                                          : "its driver does not list it"}};
    Device::fields(device, fill);
    device.profile = {};  // a whole GPU has none
  }
}

}  // namespace

LiveMachine::LiveMachine(const ProbeOptions& options) {
  probes_.push_back(make_nvml_probe());
  probes_.push_back(make_amd_probe());
  probes_.push_back(make_pci_probe());
  probes_.push_back(make_cpu_probe(options.cpu_devices));
}

LiveMachine LiveMachine::seen_by(std::vector<std::unique_ptr<Probe>> probes) {
  LiveMachine machine(ProbeOptions{});
  machine.probes_ = std::move(probes);
  return machine;
}

Result<Inventory> LiveMachine::read() {
  std::vector<Finding> findings;
  std::vector<ProbeReport> reports;
  for (const auto& probe : probes_) {
    if (const auto why = probe->unviable()) {
      reports.push_back({.name = probe->name(), .reason = *why, .blind = probe->is_blind()});
      continue;
    }
    REMUDA_ASSIGN(Finding finding, probe->find());
    for (Device& device : finding.devices) make_sane(device);  // so that another probe may know better
    reports.push_back({probe->name(), static_cast<int>(finding.devices.size()), finding.reason, finding.blind});
    findings.push_back(std::move(finding));
  }
  Inventory inventory = merge(std::move(findings));
  std::map<std::string_view, const ProbeReport*> by_vendor;
  for (size_t i = 0; i < probes_.size(); ++i)
    if (!probes_[i]->vendor().empty()) by_vendor[probes_[i]->vendor()] = &reports[i];
  explain_unlisted(by_vendor, inventory.devices);
  inventory.host = host_name();
  inventory.time_s = wall_s();
  inventory.source = Inventory::kLive;
  inventory.probes = std::move(reports);
  return inventory;
}

Result<std::string> make_partition(const std::string& gpu_uuid, const std::string& profile) {
  return make_nvml_partition(gpu_uuid, profile);
}

Result<void> remove_partition(const std::string& uuid) { return remove_nvml_partition(uuid); }

Result<std::map<unsigned, std::string>> partition_instances(const std::string& gpu_uuid) {
  return nvml_instances(gpu_uuid);
}

Result<void> remove_empty_instance(const std::string& gpu_uuid, unsigned number) {
  return remove_empty_nvml_instance(gpu_uuid, number);
}

}  // namespace remuda::probe
