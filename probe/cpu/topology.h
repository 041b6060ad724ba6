// CpuTopology: the cores and NUMA nodes this process may use, as plain data. Internal to probe/cpu.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace remuda::probe::cpu {

/// The logical CPUs (hardware threads) of one core, ascending.
using Core = std::vector<int>;

struct Node {
  int numa_node = 0;                    ///< the kernel's number
  std::optional<int64_t> memory_bytes;  ///< nothing when it is not known
  std::vector<Core> cores;              ///< never empty
};

struct CpuTopology {
  std::string model;        ///< "CPU" when it is not known
  std::vector<Node> nodes;  ///< ascending; nodes with memory but without cores are left out
};

/// The live machine, restricted to the cores that cgroup and affinity allow this process; or, for tests, the machine
/// that hwloc makes from a synthetic description such as "numa:2 core:4 pu:2".
Result<CpuTopology> read_topology(const std::string& synthetic = "");

/// The topology for who asks every second. hwloc loads its plugins, with the libraries that those need, each time that
/// it reads the machine: so that happens when the logical CPUs that this thread may use have changed, which they do
/// with its affinity, its cgroup, and CPUs that go offline; and once a minute, for all else. One thread.
class KnownTopology {
 public:
  using Read = std::function<Result<CpuTopology>()>;
  explicit KnownTopology(Read read = [] { return read_topology(); }, Clock& clock = steady_clock());

  Result<CpuTopology> get();

 private:
  static constexpr double kFresh_s = 60;
  const Read read_;
  Clock& clock_;
  CpuTopology known_;
  std::vector<int> allowed_;  ///< when it was read; empty: it was not
  double read_s_ = 0;
};

}  // namespace remuda::probe::cpu
