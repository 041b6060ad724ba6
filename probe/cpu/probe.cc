#include "probe/cpu/probe.h"

#include <fmt/format.h>

#include "base/text.h"
#include "probe/cpu/split.h"
#include "probe/cpu/topology.h"

namespace remuda::probe {
namespace {

Reading<int> numa_reading(const cpu::CoreSet& set) {
  if (set.numa_nodes.size() == 1) return set.numa_nodes.front();
  return Missing{MissingReason::unsupported, fmt::format("spans NUMA nodes {}", index_ranges(set.numa_nodes))};
}

Reading<int64_t> memory_reading(const cpu::CoreSet& set) {
  if (set.memory_bytes) return *set.memory_bytes;
  return Missing{MissingReason::unsupported,
                 fmt::format("the memory of NUMA node {} is not known", index_ranges(set.numa_nodes))};
}

class CpuProbe final : public Probe {
 public:
  explicit CpuProbe(int cpu_devices) : cpu_devices_(cpu_devices) {}

  const char* name() const override { return "cpu"; }
  std::optional<std::string> unviable() override { return std::nullopt; }

  Result<Finding> find() override {
    REMUDA_ASSIGN(const cpu::CpuTopology topology, topology_.get());
    REMUDA_ASSIGN(const std::vector<cpu::CoreSet> sets, cpu::split_cores(topology.nodes, cpu_devices_));
    Finding finding;
    for (const cpu::CoreSet& set : sets) {
      Device& device = finding.devices.emplace_back();
      device.index = static_cast<int>(finding.devices.size()) - 1;
      device.id = device.label();
      device.kind = DeviceKind::cpu;
      device.model = topology.model;
      device.cores = set.pus;
      device.numa_node = numa_reading(set);
      device.memory_bytes = memory_reading(set);
    }
    return finding;
  }

 private:
  const int cpu_devices_;
  cpu::KnownTopology topology_;
};

}  // namespace

std::unique_ptr<Probe> make_cpu_probe(int cpu_devices) { return std::make_unique<CpuProbe>(cpu_devices); }

}  // namespace remuda::probe
