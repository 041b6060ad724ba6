#include "cluster/kubelet.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "cluster/kubelet_text.h"

namespace remuda::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kCheckpoint = R"({"Data": {"PodDeviceEntries": [
  {"PodUID": "u-1", "ContainerName": "main", "ResourceName": "nvidia.com/gpu", "DeviceIDs": {"0": ["GPU-1"]},
   "AllocResp": "CgA="},
  {"PodUID": "u-2", "ContainerName": "main", "ResourceName": "nvidia.com/gpu.shared", "DeviceIDs": ["GPU-2::0"]},
  {"PodUID": "u-1", "ContainerName": "side", "ResourceName": "nvidia.com/gpu.shared", "DeviceIDs": {"-1": ["GPU-2::1"]}}
  ], "RegisteredDevices": {"nvidia.com/gpu": ["GPU-0", "GPU-1"], "nvidia.com/gpu.shared": ["GPU-2::0", "GPU-2::1"]}},
  "Checksum": 1234567})";

TEST(KubeletText, ReadsListsOfOldAndNewKubelets) {
  const auto checkpoint = parse_device_checkpoint(kCheckpoint, "it");
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_THAT(checkpoint->registered, ElementsAre("GPU-0", "GPU-1", "GPU-2::0", "GPU-2::1"));
  EXPECT_THAT(checkpoint->pods, ElementsAre(PodDevices{"u-1", "main", "nvidia.com/gpu", {"GPU-1"}},
                                            PodDevices{"u-2", "main", "nvidia.com/gpu.shared", {"GPU-2::0"}},
                                            PodDevices{"u-1", "side", "nvidia.com/gpu.shared", {"GPU-2::1"}}));
}

TEST(KubeletText, OtherTextsAreNoneOrHaveNothing) {
  EXPECT_FALSE(parse_device_checkpoint("{", "it"));
  EXPECT_THAT(parse_device_checkpoint("[1]", "it").error().message, HasSubstr("it is no checkpoint"));
  for (const char* text : {R"({"Data": {}})", R"({"Data": {"PodDeviceEntries": null, "RegisteredDevices": null}})",
                           R"({"Data": {"PodDeviceEntries": [1, {}, {"DeviceIDs": {"0": 7}}]}})"})
    EXPECT_THAT(parse_device_checkpoint(text, "it")->pods, IsEmpty()) << text;
}

TEST(KubeletText, NamesPodsByTheirFolders) {
  EXPECT_EQ(parse_pod_folder("ml_train-0_u-1")->name_space, "ml");
  EXPECT_EQ(parse_pod_folder("ml_train-0_u-1")->name, "train-0");
  EXPECT_EQ(parse_pod_folder("ml_train-0_u-1")->uid, "u-1");
  EXPECT_FALSE(parse_pod_folder("ml_train"));
  EXPECT_FALSE(parse_pod_folder("__"));
}

class KubeletTest : public testing::Test {
 protected:
  KubeletTest() {
    for (int index = 0; index < 4; ++index) {
      Device gpu{.id = "GPU-" + std::to_string(index), .kind = DeviceKind::gpu, .index = index};
      gpu.uuid = gpu.id;
      box_.devices.push_back(gpu);
    }
    folder_.write("checkpoint", kCheckpoint);
    folder_.write("cgroup/kubepods.slice/cgroup.procs", "");
    folder_.write("pods/ml_train-0_u-1/main/0.log", "");
  }
  std::vector<pool::Allocation> look() const {
    return kubelet_allocations(box_, {folder_.path("checkpoint"), folder_.path("pods"), folder_.path("cgroup")});
  }

  const ScratchFolder folder_;
  Inventory box_;
};

TEST_F(KubeletTest, ItsDevicesAreItsPods) {
  EXPECT_THAT(
      look(),
      ElementsAre(pool::Allocation{"GPU-0", "Kubernetes", "", "a pod (kubectl)"},
                  pool::Allocation{
                      "GPU-1", "Kubernetes", "pod ml/train-0", "a pod (kubectl)", {{"ml", "train-0", "u-1", "main"}}},
                  pool::Allocation{"GPU-2",
                                   "Kubernetes",
                                   "pod u-2, pod ml/train-0",
                                   "a pod (kubectl)",
                                   {{"", "", "u-2", "main"}, {"ml", "train-0", "u-1", "side"}}}));
}

TEST_F(KubeletTest, APodThatHasADeviceTwiceIsNamedOnce) {
  folder_.write("checkpoint", R"({"Data": {"PodDeviceEntries": [
    {"PodUID": "u-1", "ContainerName": "main", "DeviceIDs": ["GPU-2::0", "GPU-2::1"]},
    {"PodUID": "u-1", "ContainerName": "side", "DeviceIDs": ["GPU-2::2"]}]}})");
  EXPECT_THAT(look(),
              ElementsAre(pool::Allocation{"GPU-2",
                                           "Kubernetes",
                                           "pod ml/train-0",
                                           "a pod (kubectl)",
                                           {{"ml", "train-0", "u-1", "main"}, {"ml", "train-0", "u-1", "side"}}}));
}

TEST_F(KubeletTest, AFileOfOneThatIsNotThereAnyMoreCountsForNothing) {
  std::filesystem::remove_all(folder_.path("cgroup/kubepods.slice"));
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(KubeletTest, AllGpusAreItsWhereItsFileCannotBeRead) {
  folder_.write("checkpoint", "{");
  box_.devices.push_back({.id = "cpu:0", .kind = DeviceKind::cpu});
  EXPECT_THAT(look(), SizeIs(4)) << "no kubelet gives out a CPU";
}

}  // namespace
}  // namespace remuda::cluster
