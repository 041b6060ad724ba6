// Tests only: `remuda run --share` on machines that the test library plays, with a stand-in for the control program of
// MPS and its daemon, first in PATH.
#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/nvml/library.h"

namespace remuda::tests::nvml {

/// GPU-0000000N, of 40 GiB.
Device gpu(int index);
/// A GPU, and one that is cut in three: MIG-00000000 of 20 GiB, 1 of 5 and 2 of 10.
std::vector<Device> cut_machine();

/// Jobs and stand-in find a folder under the name OUT. There "calls" gets a line for each daemon that is started or
/// ends, and "commands" one for each command that it took. The files "fail", "hang" and "deaf" there make it do so.
class Share : public testing::Test {
 protected:
  static constexpr double kPatience_s = 20;

  /// Of two whole GPUs.
  Share();
  /// No lease and no daemon is left.
  void TearDown() override;

  void play(const std::vector<Device>& devices) const;
  std::unique_ptr<RunningProgram> begin(std::vector<std::string> flags, const std::string& script) const;
  Finished run(std::vector<std::string> flags, const std::string& script) const;
  process::Environment environment() const;

  Json leases() const;
  bool comes(const std::string& file) const;
  std::vector<std::string> calls() const;
  /// Processes of stand-ins of this test.
  std::vector<pid_t> daemons() const;

  ScratchFolder folder_;
};

}  // namespace remuda::tests::nvml
