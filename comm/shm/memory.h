// Memory: a memory file (base/memory_file.h), held by the first of the ranks that share it and opened by the others.
//
// It grows on request, and takes memory only where it is written. Ranks that are threads of one process share one
// Memory. share_memory() is how the ranks agree on it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/memory_file.h"
#include "base/result.h"
#include "comm/rendezvous.h"

namespace remuda::comm::shm {

using Offer = MemoryFile::Offer;

class Memory {
 public:
  static Result<std::shared_ptr<Memory>> create();
  static Result<std::shared_ptr<Memory>> open(const Offer& offer);
  ~Memory();

  const Offer& offer() const { return file_.offer(); }

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

  explicit Memory(MemoryFile file) : file_(std::move(file)) {}
  Result<void> grow(size_t bytes);

  MemoryFile file_;
  std::mutex mutex_;
  std::vector<Region> regions_;  // guarded by mutex_
};

/// Collective for `ranks`, in the same order everywhere, this one among them: they agree, over the control connections,
/// whether all can reach the memory of the first. Where one cannot, ErrorKind::failed on all of them, naming the first
/// such rank.
Result<std::shared_ptr<Memory>> share_memory(const Mesh& mesh, std::span<const int> ranks, double timeout_s);

}  // namespace remuda::comm::shm
