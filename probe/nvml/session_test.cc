#include "probe/nvml/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "probe/nvml/testing/fake_lib.h"

namespace remuda::probe::nvml {
namespace {

using ::testing::ElementsAre;

class OneSession : public ::testing::Test {
 protected:
  void SetUp() override { fake::machine() = {.gpus = {fake::gpu(1), fake::gpu(2)}}; }
  Inventory read() {
    Session session(lib_, files_, avoid_, [this](const std::string& step) { steps_.push_back(step); });
    return session.read();
  }

  Lib lib_ = fake::new_driver();
  KernelFiles files_{.sys = "/nowhere"};
  Avoid avoid_;
  std::vector<std::string> steps_;
};

TEST_F(OneSession, TellsEachStepBeforeItBegins) {
  read();
  EXPECT_THAT(steps_, ElementsAre("open 0", "read 0", "open 1", "read 1", "links 0", "links 1", "links 0", "links 1",
                                  "processes"));
}

TEST_F(OneSession, TouchesNothingThatIsToBeAvoided) {
  avoid_.gpus = {{0, "GPU 0 did not answer within 5 s"}};
  lib_.handle_by_index = [](unsigned index, Handle* out) {
    return index == 0 ? kUnknown : fake::new_driver().handle_by_index(index, out);
  };
  const Inventory found = read();
  EXPECT_THAT(steps_, ElementsAre("open 1", "read 1", "links 1", "links 1", "processes"));
  EXPECT_EQ(found.devices[0].uuid.missing().detail, "GPU 0 did not answer within 5 s");
  EXPECT_THAT(found.notes, ElementsAre("GPU 0 did not answer within 5 s"));
}

TEST_F(OneSession, LeavesProcessesUnnamedWhereNamingThemHung) {
  const unsigned self = static_cast<unsigned>(::getpid());
  fake::machine().gpus[0].compute = {{.pid = self, .used_memory = 1, .gpu_instance = kWholeGpu}};
  EXPECT_TRUE(read().devices[0].status.processes.value()[0].user.has_value());
  avoid_.processes = "asking the system whose process this is did not answer within 5 s";
  const auto processes = read().devices[0].status.processes.value();
  EXPECT_EQ(processes[0].user.missing().detail, avoid_.processes);
  EXPECT_EQ(processes[0].memory_bytes.value(), 1);
}

TEST_F(OneSession, SurvivesALibraryThatCannotCount) {
  lib_.device_count = [](unsigned*) { return kUnknown; };
  const Inventory found = read();
  EXPECT_TRUE(found.devices.empty());
  EXPECT_THAT(found.notes, ElementsAre("number of GPUs: the driver answers with error 999"));
  ASSERT_EQ(found.probes.size(), 1);
  EXPECT_TRUE(found.probes[0].blind);
}

TEST_F(OneSession, BoundsACountThatCannotBe) {
  lib_.device_count = [](unsigned* out) { return *out = 4'000'000'000, kSuccess; };
  lib_.handle_by_index = [](unsigned, Handle*) { return kGpuIsLost; };
  EXPECT_EQ(read().devices.size(), 256);
}

}  // namespace
}  // namespace remuda::probe::nvml
