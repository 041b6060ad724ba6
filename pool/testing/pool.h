// For the tests of this folder: folders, machines, jobs and child processes.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "base/testing/scratch_folder.h"
#include "device/inventory.h"
#include "pool/state.h"

namespace remuda::pool {

/// In memory, where possible: no test here is about the disk, and a disk takes milliseconds for each sync.
class TestFolder : public ScratchFolder {
 public:
  TestFolder();
};

/// `gpus` like GPUs, gpu:0 and on, pair by pair on one NUMA node, each of which has four cores and 16 GiB.
Inventory test_box(int gpus);

/// For `count` devices, kept by this process.
Job test_job(const std::string& user, int count, double share = 1);

/// For messages of failed tests.
void PrintTo(const Job& job, std::ostream* stream);
void PrintTo(const PoolState& state, std::ostream* stream);

}  // namespace remuda::pool
