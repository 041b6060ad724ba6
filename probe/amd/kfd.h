// The KFD topology: nodes that are CPUs, GPUs or parts of GPUs, and the links between them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/reading.h"

namespace remuda::probe::amd {

/// A file "properties": a name and a number on each line.
using Properties = std::map<std::string, uint64_t, std::less<>>;

/// Lines that are not a name and a number are skipped; so is all that follows the 512th name.
Properties parse_properties(std::string_view text);
/// The property's value; nothing where there is none, or where it is above `most`.
std::optional<uint64_t> find(const Properties& properties, std::string_view name, uint64_t most = UINT64_MAX);

struct KfdLink {
  int to = 0;  ///< number of a node
  std::optional<uint64_t> type, weight;
  uint64_t min_mbps = 0, max_mbps = 0;  ///< MB/s; 0 = not reported

  bool is_xgmi() const { return type == 11; }
  bool is_pcie() const { return type == 2; }
};

struct KfdNode {
  int number = 0;
  uint64_t gpu_id = 0;  ///< its name in /sys/class/kfd/kfd/proc; 0 = not reported
  Properties properties;
  std::vector<KfdLink> links;                              ///< io_links, then p2p_links
  std::optional<int64_t> memory_bytes, memory_used_bytes;  ///< of its own memory

  bool is_gpu() const { return find(properties, "simd_count").value_or(0) > 0; }
  bool is_cpu() const { return find(properties, "cpu_cores_count").value_or(0) > 0; }
  /// 0000:63:00.0; nothing when the driver reports none.
  std::optional<std::string> pci() const;
  /// 90010 -> gfx90a.
  std::optional<std::string> target() const;
  std::optional<int> multiprocessors() const;
};

struct Kfd {
  std::vector<KfdNode> nodes;
  std::string reason;  ///< why some nodes are not among them; empty when all are
};

Kfd read_kfd(const std::string& sysfs);

}  // namespace remuda::probe::amd
