#include "train/device/pinned_memory.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <unistd.h>

namespace remuda::train {
namespace {

/// As many as a loader has at once: a batch in use, and inputs and targets of those that are made ahead.
constexpr size_t kMostKept = 8;

struct PinnedBlock {
  std::byte* start = nullptr;
  size_t bytes = 0;
  bool registered = false;
};

size_t page() {
  static const auto bytes = size_t(::sysconf(_SC_PAGESIZE));
  return bytes;
}

/// The blocks that nobody holds. Those that are held keep it alive.
class Pool {
 public:
  explicit Pool(const DeviceOps& ops) : ops_(ops) {}
  ~Pool() {
    for (const PinnedBlock& block : free_) release(block);
  }
  Pool(const Pool&) = delete;

  /// Of at least so many bytes. Shares change a little all the time, so a block that is larger will do.
  PinnedBlock take(size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const auto fits = [&](const PinnedBlock& block) { return block.bytes >= bytes && block.bytes / 2 <= bytes; };
      const auto found = std::ranges::find_if(free_, fits);
      if (found != free_.end()) {
        const PinnedBlock block = *found;
        free_.erase(found);
        return block;
      }
    }
    PinnedBlock block;
    block.bytes = (bytes + bytes / 8 + page()) / page() * page();
    block.start = static_cast<std::byte*>(::operator new[](block.bytes, std::align_val_t(page())));
    block.registered = ops_.register_host({block.start, block.bytes});
    return block;
  }

  /// The one that has been there longest goes where there are too many.
  void give_back(const PinnedBlock& block) {
    const std::lock_guard lock(mutex_);
    free_.push_back(block);
    if (free_.size() <= kMostKept) return;
    release(free_.front());
    free_.pop_front();
  }

 private:
  void release(const PinnedBlock& block) const {
    if (block.registered) ops_.release_host({block.start, block.bytes});
    ::operator delete[](block.start, std::align_val_t(page()));
  }

  const DeviceOps ops_;
  std::mutex mutex_;
  std::deque<PinnedBlock> free_;
};

}  // namespace

data::BatchMemory pinned_memory(const DeviceOps& ops) {
  if (ops.is_synchronous()) return data::plain_memory;
  return [pool = std::make_shared<Pool>(ops)](size_t bytes) {
    const PinnedBlock block = pool->take(bytes);
    return std::shared_ptr<std::byte[]>(block.start, [pool, block](std::byte*) { pool->give_back(block); });
  };
}

}  // namespace remuda::train
