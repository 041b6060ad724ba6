#include "doctor/gather.h"

#include <gmock/gmock.h>
#include <limits>
#include <unistd.h>

#include "base/testing/scratch_folder.h"
#include "doctor/testing/machine.h"

namespace remuda::doctor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class Gather : public ::testing::Test {
 protected:
  HostFacts gather(const Inventory& inventory = {}) const { return gather_facts(inventory, tree_.path("")); }
  std::vector<std::string> device_paths() const {
    const HostFacts facts = gather();
    std::vector<std::string> paths;
    for (const DeviceFile& file : facts.device_files.value()) paths.push_back(file.path);
    return paths;
  }

  ScratchFolder tree_;
};

TEST_F(Gather, AnEmptyHostTellsWhatItLacks) {
  const HostFacts facts = gather();
  EXPECT_FALSE(facts.container.value());
  EXPECT_FALSE(facts.host_pids.has_value());
  EXPECT_FALSE(facts.shm_bytes.has_value());
  EXPECT_FALSE(facts.sharing_daemon.value());
  EXPECT_THAT(facts.device_files.value(), IsEmpty());
  EXPECT_THAT(facts.slots.value(), IsEmpty());
}

TEST_F(Gather, ThisProcessHasCoresAndLimits) {
  const HostFacts facts = gather();
  EXPECT_FALSE(facts.cores.value().empty());
  EXPECT_GT(facts.open_files.value(), 0);
  EXPECT_TRUE(facts.memlock_bytes.has_value());
  EXPECT_TRUE(facts.device_order.has_value());
}

TEST_F(Gather, KnowsAContainerByItsFiles) {
  tree_.write("proc/1/cgroup", "0::/init.scope\n");
  EXPECT_FALSE(gather().container.value());
  tree_.write("proc/1/cgroup", "0::/kubepods/burstable/pod1\n");
  EXPECT_TRUE(gather().container.value());
  tree_.write("proc/1/cgroup", "0::/\n");
  tree_.write(".dockerenv", "");
  EXPECT_TRUE(gather().container.value());
}

TEST_F(Gather, KnowsTheHostsPidNamespace) {
  tree_.link("proc/self/ns/pid", "pid:[4026531836]");
  EXPECT_TRUE(gather().host_pids.value());
  tree_.remove("proc/self/ns/pid");
  tree_.link("proc/self/ns/pid", "pid:[4026532201]");
  EXPECT_FALSE(gather().host_pids.value());
}

TEST_F(Gather, ListsDeviceFilesOfGpusAlone) {
  for (const char* name : {"nvidia0", "nvidia12", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "nvidia", "kfd", "null",
                           "dri/renderD128", "dri/card0"})
    tree_.write(std::string("dev/") + name, "");
  EXPECT_THAT(device_paths(), UnorderedElementsAre("/dev/nvidia0", "/dev/nvidia12", "/dev/nvidiactl", "/dev/nvidia-uvm",
                                                   "/dev/kfd", "/dev/dri/renderD128"));
  EXPECT_TRUE(gather().device_files.value()[0].usable);
  EXPECT_FALSE(gather().device_files.value()[0].group.empty());
}

TEST_F(Gather, FindsTheSharingDaemon) {
  tree_.write("proc/17/comm", "nvidia-cuda-mps\n");
  EXPECT_TRUE(gather().sharing_daemon.value());
}

TEST_F(Gather, FindsProcessesThatAreGone) {
  constexpr int kNeverUsed = std::numeric_limits<int>::max();  // above the kernel's highest pid_max
  Inventory machine = made_machine(1);
  machine.devices[0].status.processes =
      std::vector<Process>{{.pid = ::getpid()}, {.pid = kNeverUsed}, {.pid = 1}, {.pid = 0}, {.pid = -1}};
  EXPECT_THAT(gather(machine).gone_pids.value(), ElementsAre(kNeverUsed));
}

TEST_F(Gather, AsksAboutTheInventorysGpus) {
  tree_.link("sys/bus/pci/devices/0000:20:00.0/driver", "/nowhere/nouveau");
  const HostFacts facts = gather(made_machine(2));
  ASSERT_EQ(facts.slots.value().size(), 2u);
  EXPECT_EQ(facts.slots.value()[0].bound_driver.value(), "nouveau");
  EXPECT_FALSE(facts.slots.value()[1].bound_driver.has_value());
}

TEST(GatherLive, ThisHostAnswers) {
  const HostFacts facts = gather_facts(Inventory{});
  EXPECT_TRUE(facts.container.has_value());
  EXPECT_TRUE(facts.host_pids.has_value());
}

}  // namespace
}  // namespace remuda::doctor
