#include "measure/plan.h"

#include <gmock/gmock.h>

namespace remuda::measure {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kBytes = 1 << 20;

Device cpu(int index, std::vector<int> cores) {
  Device device{.id = "cpu:" + std::to_string(index), .index = index};
  device.cores = Reading(std::move(cores));
  return device;
}

Device gpu(int index, const std::string& vendor) {
  Device device{.id = "uuid-" + std::to_string(index), .kind = DeviceKind::gpu, .index = index, .vendor = vendor};
  device.uuid = Reading(device.id);
  return device;
}

Plan plan_of(const std::vector<Device>& devices, double seconds = 1) {
  std::vector<const Device*> pointers;
  for (const Device& device : devices) pointers.push_back(&device);
  return make_plan(pointers, seconds, kBytes);
}

std::vector<std::string> names(const Plan& plan) {
  std::vector<std::string> all;
  for (const Phase& phase : phases(plan)) all.push_back(name_of(plan, phase));
  return all;
}

TEST(Plan, OfTwoCpusIsTwoRanksAndOnePair) {
  const Plan plan = plan_of({cpu(0, {0, 1}), cpu(1, {2, 3})});
  EXPECT_EQ(rank_count(plan), 2);
  EXPECT_THAT(names(plan), ElementsAre("cpu:0", "cpu:1", "cpu:0 from cpu:1", "cpu:1 from cpu:0", "cpu:0 and cpu:1"));
  EXPECT_THAT(plan.devices[1].cores, ElementsAre(2, 3));
}

TEST(Plan, GpusOfOneVendorAreOneRankAndUnlikeOnesNoPair) {
  const Plan plan = plan_of({gpu(0, "one"), gpu(1, "other"), gpu(2, "one"), cpu(0, {0})});
  EXPECT_EQ(rank_count(plan), 3);
  EXPECT_EQ(plan.devices[0].rank, plan.devices[2].rank);
  EXPECT_THAT(names(plan), ElementsAre("gpu:0", "gpu:1", "gpu:2", "cpu:0", "gpu:0 from gpu:2", "gpu:2 from gpu:0",
                                       "gpu:0 and gpu:2"));
  EXPECT_EQ(host_rank(plan), plan.devices[3].rank);
}

TEST(Plan, APartitionIsARankOfItsOwnAndNoPair) {
  Device one = gpu(0, "one"), other = gpu(1, "one");
  one.kind = other.kind = DeviceKind::partition;
  const Plan plan = plan_of({one, other});
  EXPECT_EQ(rank_count(plan), 2);
  EXPECT_THAT(names(plan), ElementsAre("partition:0", "partition:1"));
}

TEST(Plan, WithoutCpusHasNoHostRank) { EXPECT_FALSE(host_rank(plan_of({gpu(0, "one")}))); }

TEST(Plan, OnlyTheLatencyOfAPairTakesBothRanks) {
  const Plan plan = plan_of({cpu(0, {0}), cpu(1, {1}), cpu(2, {2})});
  for (const Phase& phase : phases(plan)) {
    const bool both = phase.subject == Subject::latency;
    EXPECT_TRUE(takes_part(plan, phase, plan.devices[phase.device].rank));
    if (phase.peer == phase.device) continue;
    EXPECT_EQ(takes_part(plan, phase, plan.devices[phase.peer].rank), both);
  }
}

TEST(Plan, SharesTheTimeOut) {
  const Plan plan = plan_of({cpu(0, {0}), cpu(1, {1})}, 19);
  EXPECT_NEAR(plan.figure_s, 1, 1e-9);
  EXPECT_NEAR(longest_phase_s(plan), 8, 1e-9);
  EXPECT_GT(plan_of({cpu(0, {0})}, 0).figure_s, 0);
}

TEST(Plan, GivesEachDeviceItsPartOfTheMemory) {
  const Plan plan = plan_of({cpu(0, {0}), cpu(1, {1})});
  EXPECT_EQ(buffer_offset(plan, 0), host_offset() + kBytes);
  EXPECT_EQ(buffer_offset(plan, 1) + kBytes, shared_bytes(plan));
}

TEST(Plan, ComesThroughJsonUnchanged) {
  Plan plan = plan_of({gpu(0, "one"), cpu(0, {0, 1})});
  plan.memory_fd = 17;
  const auto read = parse_plan(to_line(to_json(plan)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, plan);
}

TEST(Plan, WrongOnesAreRefusedInOneSentence) {
  Plan good = plan_of({cpu(0, {0})});
  Plan odd_size = good, nobody = good, no_time = good, no_device = good;
  odd_size.bytes = 12345;
  nobody.devices[0].rank = 1;
  no_time.figure_s = 0;
  no_device.devices.clear();
  for (const auto& [plan, what] :
       {std::pair{odd_size, "no size"}, {nobody, "rank 1"}, {no_time, "time"}, {no_device, "not 0"}}) {
    const auto read = parse_plan(to_line(to_json(plan)));
    ASSERT_FALSE(read) << what;
    EXPECT_THAT(read.error().message, HasSubstr(what));
  }
  for (const char* text : {"", "[]", "{", "{\"figure_s\": \"x\"}"}) EXPECT_FALSE(parse_plan(text)) << text;
}

}  // namespace
}  // namespace remuda::measure
