// MemoryWatch: how much of a device's memory tensors take while it lives.
//
// libtorch's allocators report each block that they hand out or get back to who watches on that thread, whoever made
// the device (c10::MemoryReportingInfoBase), with all that is in use at that moment. The one for CPUs counts only under
// libtorch's profiler: count_cpu_memory() puts one in its place that always counts.
// Where this thread has joined a recorder, that has it over time, as a counter.
//
//   const MemoryWatch watch(device);
//   loss.backward();
//   if (const auto use = watch.use()) std::cout << use->peak - use->before;
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <memory>
#include <optional>

#include "train/torch_compat.h"

namespace remuda::train {

/// The counter's name.
inline constexpr const char* kMemoryCounter = "bytes in tensors";

/// In bytes, over all threads of the process.
struct MemoryUse {
  double before = 0;  ///< in tensors when the watch began
  double peak = 0;    ///< in tensors, at most
  double reserved_peak =
      0;  ///< what the allocator held for them, at most; as the peak where it keeps no more than that
};

class MemoryWatch {
 public:
  /// Watches what this thread does, and the backward passes that it starts. Watches may be nested: the inner one sees.
  explicit MemoryWatch(torch::Device device);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;

  /// Since it began; nothing where no block was reported, as by a device without a counting allocator.
  std::optional<MemoryUse> use() const;

 private:
  class Reports;
  std::shared_ptr<Reports> reports_;
  std::unique_ptr<c10::DebugInfoGuard> guard_;  ///< none while libtorch's profiler watches
};

/// What is in tensors on the device now.
std::optional<MemoryUse> memory_in_use(torch::Device device);

/// For a program, before its first tensor: from then on tensors on the CPU are counted, at the price of two additions
/// for each.
void count_cpu_memory();

}  // namespace remuda::train
