#include "probe/cpu/probe.h"

#include <fmt/format.h>

#include "base/text.h"
#include "probe/cpu/split.h"
#include "probe/cpu/topology.h"

namespace remuda {
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
  std::optional<std::string> unviable() const override { return std::nullopt; }

  Result<std::vector<Device>> devices() override {
    REMUDA_ASSIGN(const cpu::CpuTopology topology, cpu::read_topology());
    REMUDA_ASSIGN(const std::vector<cpu::CoreSet> sets, cpu::split_cores(topology.nodes, cpu_devices_));
    std::vector<Device> devices;
    for (const cpu::CoreSet& set : sets)
      devices.push_back({fmt::format("cpu:{}", devices.size()), DeviceKind::cpu, topology.model, set.pus,
                         numa_reading(set), memory_reading(set)});
    return devices;
  }

 private:
  const int cpu_devices_;
};

}  // namespace

std::unique_ptr<Probe> make_cpu_probe(int cpu_devices) { return std::make_unique<CpuProbe>(cpu_devices); }

}  // namespace remuda
