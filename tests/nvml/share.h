// Tests only: `remuda run --share` on machines simulated by the test library, with a fake control program of MPS and
// its daemon, first in PATH.
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
/// A GPU, and one that is partitioned in three: MIG-00000000 of 20 GiB, 1 of 5 and 2 of 10.
std::vector<Device> cut_machine();

/// Jobs and the fake program find a folder in the variable OUT. "calls" in it gets a line for each daemon that is
/// started or ends, and "commands" one for each command that a daemon received. The files "fail", "hang" and "deaf" in
/// it make the program fail, hang or ignore commands.
class Share : public testing::Test {
 protected:
  static constexpr double kPatience_s = 20;

  /// With two whole GPUs.
  Share();
  /// Checks that no lease and no daemon is left.
  void TearDown() override;

  void play(const std::vector<Device>& devices) const;
  std::unique_ptr<RunningProgram> begin(std::vector<std::string> flags, const std::string& script) const;
  Finished run(std::vector<std::string> flags, const std::string& script) const;
  process::Environment environment() const;

  Json leases() const;
  bool comes(const std::string& file) const;
  std::vector<std::string> calls() const;
  /// Processes of this test's fake daemons.
  std::vector<pid_t> daemons() const;

  ScratchFolder folder_;
};

}  // namespace remuda::tests::nvml
