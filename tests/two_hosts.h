// Tests only: two hosts, each a network namespace, joined by a virtual cable. Needs root.
#pragma once

#include <string>
#include <vector>

#include "tests/train_job_files.h"

namespace remuda::tests {

/// Two namespaces and the cable between them, removed with this object.
class TwoHosts {
 public:
  /// `bits_per_s`: what the cable carries in each direction; 0: no limit.
  explicit TwoHosts(double bits_per_s = 0);
  TwoHosts(const TwoHosts&) = delete;
  ~TwoHosts();

  /// False where this system does not permit them.
  bool works() const { return works_; }
  std::string address(int host) const;

  /// Starts rank `rank`, a worker, on host `rank`.
  RunningProgram start(int rank, const ScratchFolder& folder, const std::string& secret, int timeout_s = 60) const;
  /// The same with `remuda train`, as a launcher such as torchrun would. `home` is for its state; the report of rank 0
  /// is report-0.json in `folder`.
  RunningProgram launch(int rank, const ScratchFolder& folder, const ScratchFolder& home,
                        const std::vector<std::string>& arguments = {}) const;
  RunningProgram start(int host, const std::vector<std::string>& program,
                       const process::Environment& environment) const;

 private:
  bool plug_in(int host, double bits_per_s) const;
  bool works_ = false;
};

}  // namespace remuda::tests
