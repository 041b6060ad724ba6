// Tests only: `remuda` and its jobs on a live machine of eight GPUs, which the test library simulates.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"
#include "tests/job_fixture.h"

namespace remuda::tests::nvml {

/// The machine's file is read again at each probe, so a change of the file is a change of the machine.
class LiveJobTest : public JobTest {
 protected:
  static constexpr size_t kGpus = 8;

  /// Skips the test where this machine has a pool for all users, which the jobs would enter.
  void SetUp() override;
  std::vector<std::string> machine() const override { return {}; }
  process::Environment environment() const override;

  Device& gpu_(size_t gpu) { return machine_.devices.at(gpu); }
  /// Writes the machine's file: the machine is as described from now on.
  void happens();

  Inventory machine_;
  std::string faults_;  ///< see faults.h
};

}  // namespace remuda::tests::nvml
