#include "cli/train/train_lease.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "pool/pool.h"

namespace remuda::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TrainLease : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_STATE_HOME", state_.path().c_str(), 1); }
  void TearDown() override {
    for (const char* name : {"XDG_STATE_HOME", "REMUDA_JOB", "REMUDA_POOL", "REMUDA_DEVICES", "REMUDA_DEVICE_CPUS"})
      ::unsetenv(name);
  }
  static void be_within_a_job(const std::string& pool, const char* cpus) {
    ::setenv("REMUDA_JOB", "7", 1);
    ::setenv("REMUDA_POOL", pool.c_str(), 1);
    ::setenv("REMUDA_DEVICES", "GPU-a,cpu:1", 1);
    ::setenv("REMUDA_DEVICE_CPUS", cpus, 1);
  }
  const std::string pool_of_recording() const { return pool::pool_folder(machine_.file).value(); }

  ScratchFolder state_;
  const MachineFlags machine_{.file = state_.write("lab.json", "{}")};
};

TEST_F(TrainLease, IsNoneOutsideOfAJob) { EXPECT_EQ(callers_lease({}).value(), std::nullopt); }

TEST_F(TrainLease, IsReadFromTheEnvironment) {
  be_within_a_job(pool_of_recording(), ";4-6,9");
  const auto lease = callers_lease(machine_);
  ASSERT_TRUE(lease && *lease);
  EXPECT_EQ((*lease)->job, 7);
  EXPECT_THAT((*lease)->devices, ElementsAre("GPU-a", "cpu:1"));
  EXPECT_THAT((*lease)->cpus, ElementsAre(IsEmpty(), ElementsAre(4, 5, 6, 9)));
}

TEST_F(TrainLease, OfAnotherMachineIsRefusedOrNone) {
  be_within_a_job("/another", ";4");
  EXPECT_THAT(callers_lease({}).error().message, HasSubstr("job 7 is one of another pool, /another; name its machine"));
  EXPECT_EQ(callers_lease(machine_).value(), std::nullopt) << "a rehearsal on another machine";
}

TEST_F(TrainLease, WithCoresThatAreNoneIsRefused) {
  for (const char* wrong : {"", "4-6", ";4;5", ";x"}) {
    be_within_a_job(pool_of_recording(), wrong);
    EXPECT_THAT(callers_lease(machine_).error().message,
                HasSubstr("it must be the CPUs of each device in REMUDA_DEVICES, as in 0-3;4-7"))
        << wrong;
  }
}

}  // namespace
}  // namespace remuda::cli
