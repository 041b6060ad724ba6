// Tests only: two hosts, for workers that are started by hand, and for slow cables. Needs root.
#pragma once

#include <string>
#include <vector>

#include "tests/several_hosts.h"

namespace remuda::tests {

class TwoHosts : public SeveralHosts {
 public:
  /// `bits_per_s`: what the cable of each carries to the other; 0: no limit.
  explicit TwoHosts(double bits_per_s = 0) : SeveralHosts(2, bits_per_s) {}

  using SeveralHosts::start;
  /// Starts rank `rank`, a worker, on host `rank`.
  RunningProgram start(int rank, const ScratchFolder& folder, const std::string& secret, int timeout_s = 60) const;
  /// SeveralHosts::launch(), on the first CPU device.
  RunningProgram launch(int rank, const ScratchFolder& folder, const ScratchFolder& home,
                        const std::vector<std::string>& arguments = {}) const;
};

}  // namespace remuda::tests
