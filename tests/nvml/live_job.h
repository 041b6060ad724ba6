// Tests only: `remuda` and its jobs on a live machine of eight GPUs, which the test library plays.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"
#include "tests/job_fixture.h"

namespace remuda::tests::nvml {

/// The machine's file is read anew at each look, so what is written there happens to the machine.
class LiveJobTest : public JobTest {
 protected:
  static constexpr size_t kGpus = 8;

  /// Skips the test where this machine has a pool for all its users, which jobs would enter.
  void SetUp() override;
  std::vector<std::string> machine() const override { return {}; }
  process::Environment environment() const override;

  Device& gpu_(size_t gpu) { return machine_.devices.at(gpu); }
  /// What the machine is from now on.
  void happens();

  Inventory machine_;
  std::string faults_;  ///< see faults.h
};

}  // namespace remuda::tests::nvml
