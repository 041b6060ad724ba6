// Tests only: devices, that is threads, with limited memory. Tensors of a thread count against its budget, and an
// allocation beyond it throws as on a full GPU.
#pragma once

#include <algorithm>
#include <atomic>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "train/torch_compat.h"

namespace remuda::train::testing {

/// The memory that one device, that is one thread here, has in tensors.
struct Budget {
  size_t cap = SIZE_MAX;
  std::atomic<size_t> used = 0;  ///< other threads may free what this one took
  size_t peak = 0;
};
inline thread_local Budget* t_budget = nullptr;  ///< nothing is counted while it is null

/// The bytes before each block.
struct Header {
  Budget* budget;
  size_t size;
  void* start;
};
inline constexpr size_t kHeader = 64;
static_assert(sizeof(Header) <= kHeader);

/// To who watches, as libtorch's own allocators do.
inline void report(const Budget& budget, int64_t bytes) {
  c10::reportMemoryUsageToProfiler(nullptr, bytes, budget.used, budget.used, c10::Device(c10::kCPU));
}

inline void give_back(void* block) {
  if (!block) return;
  Header header;
  std::memcpy(&header, static_cast<char*>(block) - kHeader, sizeof header);
  if (header.budget) {
    header.budget->used -= header.size;
    report(*header.budget, -static_cast<int64_t>(header.size));
  }
  std::free(header.start);
}

inline void* take(size_t size) {
  if (Budget* budget = t_budget) {
    if (budget->used + size > budget->cap) C10_THROW_ERROR(OutOfMemoryError, "out of memory, as the test wants it");
    budget->used += size;
    budget->peak = std::max<size_t>(budget->peak, budget->used);
    report(*budget, static_cast<int64_t>(size));
  }
  void* start = std::aligned_alloc(kHeader, (size + 2 * kHeader - 1) / kHeader * kHeader);
  const Header header{t_budget, size, start};
  std::memcpy(start, &header, sizeof header);
  return static_cast<char*>(start) + kHeader;
}

class CappedAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
  c10::DataPtr allocate(size_t size) override { return make(size); }
  void copy_data(void* to, const void* from, size_t size) const override { default_copy_data(to, from, size); }
#else
  c10::DataPtr allocate(size_t size) const override { return make(size); }
#endif
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }

 private:
  static c10::DataPtr make(size_t size) {
    void* block = size == 0 ? nullptr : take(size);
    return {block, block, &give_back, c10::Device(c10::kCPU)};
  }
};

/// All ranks' tensors come from the capped allocator as long as this lives; its blocks may outlive it.
class CappedMemory {
 public:
  CappedMemory() : before_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(&allocator(), kPriority); }
  ~CappedMemory() { c10::SetCPUAllocator(before_, kPriority); }

 private:
  static constexpr uint8_t kPriority = 200;
  static CappedAllocator& allocator() {
    static CappedAllocator allocator;
    return allocator;
  }
  c10::Allocator* before_;
};

/// Counts and limits what this thread allocates while this object lives.
class OnDevice {
 public:
  explicit OnDevice(Budget& budget) { t_budget = &budget; }
  ~OnDevice() { t_budget = nullptr; }
};

}  // namespace remuda::train::testing
