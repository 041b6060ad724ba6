// Tests only: several hosts, each a network namespace, joined by a switch whose cables can be cut. Needs root.
#pragma once

#include <string>
#include <vector>

#include "tests/train_job_files.h"

namespace remuda::tests {

constexpr int kHostsPort = 29500;  // where rank 0 is

/// Namespaces, one more of which is the switch; removed with this object.
class SeveralHosts {
 public:
  /// `bits_per_s`: what the cable of each carries to the others; 0: no limit.
  explicit SeveralHosts(int count, double bits_per_s = 0);
  SeveralHosts(const SeveralHosts&) = delete;
  ~SeveralHosts();

  /// False where this system does not permit them.
  bool works() const { return works_; }
  int count() const { return count_; }
  std::string address(int host) const;
  /// From now on nothing leaves this host, and nothing reaches it.
  void cut(int host) const;

  RunningProgram start(int host, const std::vector<std::string>& program,
                       const process::Environment& environment) const;
  /// Starts rank `host` there, one of count() unless given, with `remuda train` and torchrun's variables. `home` is for
  /// its state; its report is report-HOST.json in `folder`.
  RunningProgram launch(int host, const ScratchFolder& folder, const ScratchFolder& home,
                        const std::vector<std::string>& arguments = {}, int ranks = 0) const;

 private:
  bool plug_in(int host, double bits_per_s) const;
  int count_;
  bool works_ = false;
};

}  // namespace remuda::tests
