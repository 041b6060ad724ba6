#include "train/device/memory_watch.h"

#include <algorithm>
#include <atomic>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <malloc.h>
#include <mutex>

#include "profile/recorder.h"

namespace remuda::train {
namespace {

const auto kSlot = c10::DebugInfoKind::PROFILER_STATE;

/// The type in which this version of libtorch reports totals.
template <typename Function>
struct TotalOf;
template <typename Total>
struct TotalOf<void (c10::MemoryReportingInfoBase::*)(void*, int64_t, Total, Total, c10::Device)> {
  using Type = Total;
};
using Total = TotalOf<decltype(&c10::MemoryReportingInfoBase::reportMemoryUsage)>::Type;

std::atomic<int64_t> g_cpu_bytes = 0;

/// Adds to what is in use on the CPU, and reports it.
void count(void* block, int64_t bytes) {
  const auto total = static_cast<Total>(g_cpu_bytes += bytes);
  c10::reportMemoryUsageToProfiler(block, bytes, total, total, c10::Device(c10::kCPU));
}

void give_back(void* block) {
  if (!block) return;
  count(block, -static_cast<int64_t>(::malloc_usable_size(block)));
  c10::free_cpu(block);
}

class CountingAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
  c10::DataPtr allocate(size_t bytes) override { return make(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
#else
  c10::DataPtr allocate(size_t bytes) const override { return make(bytes); }
#endif
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }

 private:
  static c10::DataPtr make(size_t bytes) {
    void* const block = c10::alloc_cpu(bytes);
    if (block) count(block, static_cast<int64_t>(::malloc_usable_size(block)));
    return {block, block, &give_back, c10::Device(c10::kCPU)};
  }
};

}  // namespace

/// Its functions are called by any thread.
class MemoryWatch::Reports final : public c10::MemoryReportingInfoBase {
 public:
  explicit Reports(torch::Device device) : device_(device) {}

  void reportMemoryUsage(void* /*block*/, int64_t bytes, Total allocated, Total reserved, c10::Device device) override {
    if (device.type() != device_.type() || (device_.has_index() && device.index() != device_.index())) return;
    const auto now = static_cast<double>(allocated);
    const std::lock_guard lock(mutex_);
    if (!use_) use_ = MemoryUse{.before = now - static_cast<double>(bytes), .peak = now - static_cast<double>(bytes)};
    use_->peak = std::max(use_->peak, now);
    use_->reserved_peak = std::max({use_->reserved_peak, static_cast<double>(reserved), use_->peak});
    if (recorder_) recorder_->set_counter(kMemoryCounter, now);
  }
  /// False: libtorch's own allocator for CPUs need not count for this.
  bool memoryProfilingEnabled() const override { return false; }

  std::optional<MemoryUse> use() {
    const std::lock_guard lock(mutex_);
    return use_;
  }

 private:
  const torch::Device device_;
  profile::Recorder* const recorder_ = profile::recorder_here();  ///< outlives the watch
  std::mutex mutex_;
  std::optional<MemoryUse> use_;
};

MemoryWatch::MemoryWatch(torch::Device device) : reports_(std::make_shared<Reports>(device)) {
  auto* const other = c10::ThreadLocalDebugInfo::get(kSlot);
  if (!other || dynamic_cast<Reports*>(other)) guard_ = std::make_unique<c10::DebugInfoGuard>(kSlot, reports_);
}

MemoryWatch::~MemoryWatch() = default;

std::optional<MemoryUse> MemoryWatch::use() const { return reports_->use(); }

std::optional<MemoryUse> memory_in_use(torch::Device device) {
  const MemoryWatch watch(device);
  {
    const auto block = torch::empty({1}, torch::TensorOptions().dtype(torch::kByte).device(device));
  }
  auto use = watch.use();
  if (use) use->peak = use->before;
  return use;
}

void count_cpu_memory() {
  constexpr uint8_t kPriority = 100;  // above libtorch's own
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, kPriority);
}

}  // namespace remuda::train
