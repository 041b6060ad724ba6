#include "cli/train/train_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

const Inventory kTrainedOn{
    .host = "lab",
    .devices = {{.id = "cpu:0", .cores = std::vector{0}}, {.id = "cpu:1", .cores = std::vector{1, 2, 3}}}};

TEST(TrainWorkers, AreOnePerDeviceOfTheJobInItsOrder) {
  job::ParsedJob job{.text = "text"};
  job.job.devices = {{"cpu:1"}, {"cpu:0"}};
  const workers::Listener listener{Fd(), 29500};
  const auto ranks = worker_ranks("/bin/remuda-train", job, kTrainedOn, listener, "tcp");
  ASSERT_TRUE(ranks);
  ASSERT_EQ(ranks->size(), 2u);
  const auto& [first, second] = std::tie((*ranks)[0], (*ranks)[1]);
  EXPECT_EQ(first.device, "cpu:1");
  EXPECT_THAT(first.process.argv, ElementsAre("/bin/remuda-train", "-"));
  EXPECT_EQ(first.input, "text");
  EXPECT_THAT(first.process.affinity.cores, ElementsAre(1, 2, 3));
  EXPECT_THAT(first.process.environment, Contains(Pair("OMP_NUM_THREADS", "3")));
  EXPECT_THAT(first.process.environment, Contains(Pair("REMUDA_TRANSPORT", "tcp")));
  EXPECT_THAT(first.process.environment, Contains(Pair("REMUDA_LISTEN_FD", "-1")));
  EXPECT_THAT(first.process.inherited, ElementsAre(-1));
  EXPECT_THAT(second.process.environment, Contains(Pair("RANK", "1")));
  EXPECT_THAT(second.process.environment, Not(Contains(Pair("REMUDA_LISTEN_FD", testing::_))));
  EXPECT_THAT(second.process.inherited, IsEmpty());
}

TEST(TrainWorkers, NeedAProgramBesideThisOne) {
  const auto program = worker_program();
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message, HasSubstr("remuda-train is not beside remuda in "));
}

}  // namespace
}  // namespace remuda::cli
