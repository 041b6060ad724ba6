// Group: the ranks of one host, and what they do through the memory that they share.
//
// Each has a slot, a bounce buffer for bytes that lie elsewhere, and its part of every arena, which all can read and
// write. What one rank writes there the others may read after a step that all have made.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/peers.h"
#include "comm/rendezvous.h"
#include "comm/shm/memory.h"
#include "comm/shm/slots.h"

namespace remuda::comm::shm {

/// When a wait within a call ends, and who is asked for the cause.
struct Patience {
  const Call& call;
  Peers& peers;
  double deadline_s;
};

class Group {
 public:
  /// Collective for `ranks`, in the order of their numbers, this one among them. Errors: those of share_memory();
  /// lost_peer where this rank alone cannot map it, and the others assume that all have it.
  static Result<std::unique_ptr<Group>> make(const Mesh& mesh, std::span<const int> ranks, double timeout_s);

  int size() const { return static_cast<int>(ranks_.size()); }
  /// This rank's number in the group.
  int mine() const { return mine_; }

  /// Waits for all ranks of the group, and checks that all make the same call.
  Result<void> agree_on(const Patience& patience);
  /// Waits until all ranks of the group have made this step, too.
  Result<void> step(const Patience& patience);

  /// `bytes` for each rank, zeroed; all have announced the call. Returns this rank's.
  Result<std::span<std::byte>> allocate(const Patience& patience, size_t bytes);
  /// Where `values` lie in what each rank has allocated, the same in groups of every size; 0 if they lie elsewhere.
  uint64_t offset_of(const void* values) const;
  /// Where each rank has what this one has at `mine`, in allocated memory; without those that are `left_out`, one per
  /// rank or none of them.
  std::vector<std::byte*> on_all(std::byte* mine, const std::vector<bool>& left_out = {}) const;

  /// Announces a call whose first step is that of pass_on() or gather(), with `announced`: they compare it then.
  void announce(const Call& call) { slots_.announce(call); }
  /// Copies the bytes of rank number `source` to all. Any memory.
  Result<void> pass_on(const Patience& patience, std::span<std::byte> bytes, int source, bool announced);
  /// Every rank's bytes go to all, those of rank number n to place(n). Any memory.
  Result<void> gather(const Patience& patience, std::span<const std::byte> mine,
                      const std::function<std::span<std::byte>(int number)>& place, bool announced);

 private:
  /// What allocate() returned: `stride` bytes for each rank, one after the other.
  struct Arena {
    std::byte* base;
    size_t stride;
    uint64_t offset;
  };
  Group(std::vector<int> ranks, int mine, std::shared_ptr<Memory> memory, std::byte* head);
  const Arena* arena_of(const void* values) const;
  /// In pieces, at least one: `fill(at, length)` before the others may read a bounce buffer, `drain(at, length)` after.
  template <typename Fill, typename Drain>
  Result<void> in_pieces(const Patience& patience, size_t bytes, bool announced, Fill fill, Drain drain);
  std::byte* bounce(int number) const;
  size_t stride_of(const Arena& arena, int number) const { return arena.stride * static_cast<size_t>(number); }

  std::vector<int> ranks_;
  int mine_;
  std::shared_ptr<Memory> memory_;
  std::byte* head_;
  Slots slots_;
  size_t end_;           // of the memory
  uint64_t offset_ = 0;  // of the next arena, in what each rank has
  std::vector<Arena> arenas_;
  size_t half_ = 0;
};

}  // namespace remuda::comm::shm
