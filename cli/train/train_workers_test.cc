#include "cli/train/train_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process/affinity.h"

namespace remuda::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

/// Every machine has core 0, and a rank is bound to those cores only that this process may use.
const Inventory kTrainedOn{.host = "lab",
                           .devices = {{.id = "cpu:0", .cores = process::allowed_cores()},
                                       {.id = "cpu:1", .index = 1, .cores = process::allowed_cores()}}};

TEST(TrainWorkers, AreOnePerDeviceOfTheJobInItsOrder) {
  job::ParsedJob job{.text = "text"};
  job.job.devices = {{"cpu:1"}, {"cpu:0"}};
  const Listener listener{Fd(), 29500};
  const auto ranks = worker_ranks({"/bin/remuda-train", "tcp", listener}, job, kTrainedOn);
  ASSERT_TRUE(ranks);
  ASSERT_EQ(ranks->size(), 2u);
  const auto& [first, second] = std::tie((*ranks)[0], (*ranks)[1]);
  EXPECT_EQ(first.device, "cpu:1");
  EXPECT_THAT(first.process.argv, ElementsAre("/bin/remuda-train", "-"));
  EXPECT_EQ(first.input, "text");
  EXPECT_EQ(first.process.affinity.cores, process::allowed_cores());
  EXPECT_TRUE(first.process.must_bind);
  EXPECT_THAT(first.process.environment, Contains(Pair("REMUDA_TRANSPORT", "tcp")));
  EXPECT_THAT(first.process.environment, Contains(Pair("REMUDA_LISTEN_FD", "-1")));
  EXPECT_THAT(first.process.inherited, ElementsAre(-1));
  EXPECT_THAT(second.process.environment, Contains(Pair("RANK", "1")));
  EXPECT_THAT(second.process.environment, Not(Contains(Pair("REMUDA_LISTEN_FD", testing::_))));
  EXPECT_THAT(second.process.inherited, IsEmpty());
}

TEST(TrainWorkers, ShareTheClaimOnTheFolderOfTheirCheckpoints) {
  job::ParsedJob job;
  job.job.devices = {{"cpu:1"}, {"cpu:0"}};
  const Listener listener{Fd(), 29500};
  const auto ranks = worker_ranks({"/bin/remuda-train", "auto", listener, -1, true, 77}, job, kTrainedOn);
  ASSERT_TRUE(ranks);
  for (const auto& rank : *ranks) {
    EXPECT_THAT(rank.process.inherited, Contains(77));
    EXPECT_THAT(rank.process.environment, Contains(Pair("REMUDA_CLAIM_FD", "77")));
  }
}

/// NVIDIA's and AMD's in one machine, as in tests/nvml.
Inventory unlike() {
  return {.host = "lab",
          .devices = {{.id = "GPU-a", .kind = DeviceKind::gpu, .vendor = "NVIDIA", .uuid = "GPU-a"},
                      {.id = "GPU-b", .kind = DeviceKind::gpu, .index = 1, .vendor = "NVIDIA", .uuid = "GPU-b"},
                      {.id = "GPU-c", .kind = DeviceKind::gpu, .index = 2, .vendor = "AMD", .uuid = "GPU-c"},
                      {.id = "cpu:0"}}};
}

TEST(TrainWorkers, SeeTheirOwnDeviceAndNoOther) {
  job::ParsedJob job;
  job.job.devices = {{"gpu:1"}, {"gpu:2"}, {"cpu:0"}};
  const Listener listener{Fd(), 29500};
  const auto ranks = worker_ranks({"/bin/remuda-train", "auto", listener}, job, unlike());
  ASSERT_TRUE(ranks);
  const auto has = [&](int rank, const char* name, const char* value) {
    EXPECT_THAT((*ranks)[rank].process.environment, Contains(Pair(name, value)).Times(1)) << rank << " " << name;
  };
  has(0, "CUDA_VISIBLE_DEVICES", "GPU-b");
  has(0, "ROCR_VISIBLE_DEVICES", "");
  has(0, "REMUDA_TORCH_DEVICE", "cuda");
  has(1, "CUDA_VISIBLE_DEVICES", "");
  has(1, "ROCR_VISIBLE_DEVICES", "GPU-c");
  has(1, "REMUDA_TORCH_DEVICE", "cuda");
  has(2, "CUDA_VISIBLE_DEVICES", "");
  has(2, "ROCR_VISIBLE_DEVICES", "");
  has(2, "REMUDA_TORCH_DEVICE", "cpu");
  for (const auto& rank : *ranks) EXPECT_THAT(rank.process.unset, Contains("GPU_DEVICE_ORDINAL"));
}

TEST(TrainWorkers, OfARecordedMachineAreBoundToNoCores) {
  job::ParsedJob job;
  job.job.devices = {{"gpu:0"}};
  const Listener listener{Fd(), 29500};
  Inventory recorded = unlike();
  recorded.devices[0].cores = std::vector{4000};
  const auto ranks = worker_ranks({"/bin/remuda-train", "auto", listener, -1, false}, job, recorded);
  ASSERT_TRUE(ranks);
  EXPECT_THAT((*ranks)[0].process.affinity.cores, IsEmpty());
}

TEST(TrainWorkers, NeedAProgramBesideThisOne) {
  const auto program = worker_program();
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message, HasSubstr("remuda-train is not beside remuda in "));
}

}  // namespace
}  // namespace remuda::cli
