#include "probe/live_machine.h"

#include <climits>
#include <unistd.h>

#include "base/clock.h"
#include "probe/amd/probe.h"
#include "probe/cpu/probe.h"
#include "probe/merge.h"
#include "probe/nvml/probe.h"
#include "probe/pci/probe.h"

namespace remuda::probe {
namespace {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

}  // namespace

LiveMachine::LiveMachine(const ProbeOptions& options) {
  probes_.push_back(make_nvml_probe());
  probes_.push_back(make_amd_probe());
  probes_.push_back(make_pci_probe());
  probes_.push_back(make_cpu_probe(options.cpu_devices));
}

Result<Inventory> LiveMachine::read() {
  std::vector<Finding> findings;
  std::vector<ProbeReport> reports;
  for (const auto& probe : probes_) {
    if (const auto why = probe->unviable()) {
      reports.push_back({.name = probe->name(), .reason = *why});
      continue;
    }
    REMUDA_ASSIGN(Finding finding, probe->find());
    reports.push_back({probe->name(), static_cast<int>(finding.devices.size()), finding.reason});
    findings.push_back(std::move(finding));
  }
  Inventory inventory = merge(std::move(findings));
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
