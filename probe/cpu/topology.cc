#include "probe/cpu/topology.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <hwloc.h>
#include <memory>
#include <utility>

#include "process/affinity.h"

namespace remuda::probe::cpu {
namespace {

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

/// Besides NUMA nodes and logical CPUs, hwloc searches only packages and cores, which keeps the start quick. Groups
/// must stay: without them a node inside a package appears to have all the package's cores.
int prepare(hwloc_topology_t topology, const std::string& synthetic) {
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  if (!synthetic.empty()) return hwloc_topology_set_synthetic(topology, synthetic.c_str());
  return hwloc_topology_set_flags(topology,
                                  HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING);
}

Result<Topology> load(const std::string& synthetic) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return failed(fmt::format("hwloc cannot start: {}", errno_text(errno)));
  Topology topology(raw, &hwloc_topology_destroy);
  if (prepare(raw, synthetic) != 0 || hwloc_topology_load(raw) != 0)
    return failed(fmt::format("hwloc cannot read this machine's cores: {}", errno_text(errno)));
  return topology;
}

std::string model_of(hwloc_topology_t topology) {
  const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  const char* model = hwloc_obj_get_info_by_name(package ? package : hwloc_get_root_obj(topology), "CPUModel");
  std::string words;
  for (const char* c = model ? model : ""; *c; ++c)
    if (*c != ' ' || (!words.empty() && words.back() != ' ')) words += *c;
  while (!words.empty() && words.back() == ' ') words.pop_back();
  return words.empty() ? "CPU" : words;
}

/// Takes the cores of `cpuset` out of `left`, so that no core is counted for two nodes: some machines have two kinds
/// of memory, and then two NUMA nodes, beside the same cores.
std::vector<Core> take_cores(hwloc_topology_t topology, hwloc_const_cpuset_t cpuset, hwloc_bitmap_t left) {
  std::vector<Core> cores;
  hwloc_obj_t last = nullptr;
  for (hwloc_obj_t pu = nullptr; (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu));) {
    if (!hwloc_bitmap_isset(cpuset, pu->os_index) || !hwloc_bitmap_isset(left, pu->os_index)) continue;
    hwloc_bitmap_clr(left, pu->os_index);
    const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
    if (cores.empty() || !core || core != last) cores.emplace_back();
    cores.back().push_back(static_cast<int>(pu->os_index));
    last = core;
  }
  for (Core& core : cores) std::ranges::sort(core);
  return cores;
}

std::vector<hwloc_obj_t> numa_nodes(hwloc_topology_t topology) {
  std::vector<hwloc_obj_t> nodes;
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));)
    nodes.push_back(node);
  std::ranges::sort(nodes, {}, &hwloc_obj::os_index);
  return nodes;
}

}  // namespace

Result<CpuTopology> read_topology(const std::string& synthetic) {
  REMUDA_ASSIGN(const Topology topology, load(synthetic));
  const Bitmap left(hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology.get())), &hwloc_bitmap_free);
  CpuTopology found{model_of(topology.get()), {}};
  for (const hwloc_obj_t numa : numa_nodes(topology.get())) {
    Node node{static_cast<int>(numa->os_index), std::nullopt, take_cores(topology.get(), numa->cpuset, left.get())};
    if (numa->attr->numanode.local_memory > 0) node.memory_bytes = numa->attr->numanode.local_memory;
    if (!node.cores.empty()) found.nodes.push_back(std::move(node));
  }
  if (found.nodes.empty()) return failed("hwloc finds no core that this process may use");
  return found;
}

KnownTopology::KnownTopology(Read read, Clock& clock) : read_(std::move(read)), clock_(clock) {}

Result<CpuTopology> KnownTopology::get() {
  std::vector<int> allowed = process::allowed_cores();
  const double now_s = clock_.now_s();
  if (!allowed_.empty() && allowed == allowed_ && now_s - read_s_ < kFresh_s) return known_;
  REMUDA_ASSIGN(known_, read_());
  allowed_ = std::move(allowed);
  read_s_ = now_s;
  return known_;
}

}  // namespace remuda::probe::cpu
