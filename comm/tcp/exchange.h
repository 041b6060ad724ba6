// Exchange: sends to and receives from all peers at once, so that no two ranks can wait for each other's buffers.
#pragma once

#include <span>
#include <vector>

#include "base/file.h"
#include "comm/peers.h"

namespace remuda::comm::tcp {

/// What goes to and comes from one peer; either may be empty.
struct Transfer {
  std::span<const std::byte> out;
  std::span<std::byte> in;
};

/// Carries out one transfer per rank (the own one is empty). `message` is the call they belong to. Errors: a peer that
/// is gone, or did not answer before the deadline.
Result<void> exchange(std::span<const Fd> data, std::vector<Transfer> transfers, Peers& peers, double deadline_s,
                      const Message& message);

}  // namespace remuda::comm::tcp
