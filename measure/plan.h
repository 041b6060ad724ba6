// Plan: which process measures what, and in which order. Pure.
//
// `remuda bench links` makes the plan and starts a `remuda-train --measure` for each of its ranks, which reads the plan
// as JSON on its stdin. A CPU device is a rank of its own, which runs on the device's cores. All GPUs of one vendor are
// one rank, because only within a process does one GPU copy to another; a partition is a rank of its own, as a process
// sees no more than one. The ranks go through the phases together, with a barrier before each, so that nothing else is
// measured meanwhile, and send events (workers/event.h):
//   phase       phase, of, name                  what is measured now; from the rank of the phase's device
//   measured    phase, and of a device: device (a MeasuredDevice), memory_copy_gbps; of a pull: gbps; of a latency:
//               latency_us
//   unmeasured  phase, why                       one sentence in place of figures
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "device/inventory.h"

namespace remuda::measure {

struct PlanDevice {
  std::string id, name;
  DeviceKind kind = DeviceKind::cpu;
  int rank = 0;
  std::string vendor, uuid;
  std::vector<int> cores;

  static constexpr const char* kName = "plan_device";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("id", self.id, "the device", kRequired);
    visit("name", self.name, "what people call it", kRequired);
    visit("kind", self.kind, "as in the inventory", kRequired);
    visit("rank", self.rank, "which rank measures it", kRequired);
    visit("vendor", self.vendor, "of a GPU: who made it");
    visit("uuid", self.uuid, "of a GPU: by which its driver shows it to one process");
    visit("cores", self.cores, "its own, or those nearest to it");
  }
  bool operator==(const PlanDevice&) const = default;
};

struct Plan {
  double figure_s = 0;
  int64_t bytes = 0;
  int memory_fd = -1;
  std::vector<PlanDevice> devices;

  static constexpr const char* kName = "plan";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("figure_s", self.figure_s, "seconds that one figure is measured", kRequired);
    visit("bytes", self.bytes, "size of the buffers that are copied, a power of two", kRequired);
    visit("memory_fd", self.memory_fd, "descriptor of the memory that the ranks of CPU devices share", kRequired);
    visit("devices", self.devices, "in the order of the inventory", kRequired);
  }
  bool operator==(const Plan&) const = default;
};

enum class Subject {
  device,   ///< what lies between the host and one device, and the device's rate of matrix products
  pull,     ///< the device copies from the peer's memory into its own
  latency,  ///< the smallest message between the two, there and back
};

struct Phase {
  Subject subject = Subject::device;
  size_t device = 0, peer = 0;  ///< positions in Plan::devices; the peer is the device itself where there is none
};

/// `seconds`: about how long all phases together may take; `bytes`: see memory.h.
Plan make_plan(const std::vector<const Device*>& devices, double seconds, size_t bytes);

Json to_json(const Plan& plan);
/// A usage error says what is wrong with the text.
Result<Plan> parse_plan(std::string_view text);

int rank_count(const Plan& plan);
/// Seconds that the figures of one phase are measured, at the most.
double longest_phase_s(const Plan& plan);
/// Each device, then each pair of CPUs and each pair of GPUs of one rank: pulled both ways, then latency.
std::vector<Phase> phases(const Plan& plan);
/// Whether rank `rank` has something to do in the phase. Only the rank of the phase's device sends its events.
bool takes_part(const Plan& plan, const Phase& phase, int rank);
/// "cpu:0", "cpu:0 from cpu:1", "cpu:0 and cpu:1".
std::string name_of(const Plan& plan, const Phase& phase);

/// The shared memory: a page for the turn of core_latency.h, then a buffer of the host, then one for each device.
size_t shared_bytes(const Plan& plan);
size_t host_offset();
size_t buffer_offset(const Plan& plan, size_t device);
/// The rank that touches the host's buffer first: the first one of a CPU device.
std::optional<int> host_rank(const Plan& plan);

}  // namespace remuda::measure
