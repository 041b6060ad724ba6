// Memory: a file without a name, held by rank 0 and opened by the others through /proc.
//
// It grows on request, takes memory only where it is written, and is freed with the last process that maps it, however
// that ends: nothing is left in /dev/shm, and the limit of /dev/shm does not apply. Ranks that are threads of one
// process share one Memory. share_memory() is how the ranks agree on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "comm/rendezvous.h"

namespace remuda::comm::shm {

/// How the others find the memory; sent by rank 0.
struct Offer {
  int32_t pid = 0;
  int32_t fd = -1;
  std::array<std::byte, 16> token{};  ///< also the memory's first bytes, which prove that it is the right one
};

class Memory {
 public:
  static Result<std::shared_ptr<Memory>> create();
  static Result<std::shared_ptr<Memory>> open(const Offer& offer);
  ~Memory();

  const Offer& offer() const { return offer_; }

  /// The bytes from `offset` on (a whole number of pages), zeroed at first, valid as long as the Memory. All ranks
  /// request the same. Safe from any thread.
  Result<std::byte*> map(size_t offset, size_t bytes);

  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

 private:
  struct Region {
    size_t offset;
    std::span<std::byte> bytes;
  };

  Memory(Fd fd, const Offer& offer) : fd_(std::move(fd)), offer_(offer) {}
  Result<void> grow(size_t bytes);

  Fd fd_;
  Offer offer_;
  std::mutex mutex_;
  std::vector<Region> regions_;  // guarded by mutex_
};

/// Collective: the ranks agree, over the control connections, whether all can reach rank 0's memory. Where one cannot,
/// ErrorKind::failed on all ranks, naming the first such rank.
Result<std::shared_ptr<Memory>> share_memory(const Mesh& mesh, double timeout_s);

}  // namespace remuda::comm::shm
