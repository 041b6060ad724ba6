#include "agent/partitions.h"

#include <chrono>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "agent/partition_intent.h"
#include "agent/partition_marks.h"
#include "base/testing/scratch_folder.h"

namespace remuda::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using What = PartitionChange::What;

class PartitionsTest : public ::testing::Test {
 protected:
  /// The program that makes partitions is a shell's command.
  Partitions partitions(const std::string& command) {
    return {folder_.path("marks"),
            [this, command](const PartitionChange& change) {
              started_.push_back(change.what);
              return process::ChildProcess::spawn({.argv = {"/bin/sh", "-c", command}});
            },
            [this](const std::string& sentence) { said_.push_back(sentence); }};
  }
  void await_end(Partitions& partitions) {
    for (int i = 0; i < 1000 && !partitions.step(now_s_ += 0.1); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  static Inventory machine_with(const std::vector<std::string>& uuids) {
    Inventory machine;
    for (const std::string& uuid : uuids) {
      Device device{.id = uuid, .kind = DeviceKind::partition};
      device.uuid = uuid;
      machine.devices.push_back(std::move(device));
    }
    return machine;
  }

  ScratchFolder folder_;
  double now_s_ = 100;
  std::vector<std::string> said_;
  std::vector<What> started_;
  const PartitionChange make_{What::make, "GPU-1", "1g.5gb", ""}, remove_{What::remove, "GPU-1", "", "MIG-1"},
      settle_{What::settle, "GPU-1", "", ""};
};

TEST_F(PartitionsTest, OneChangeAtATimeAndItsEndIsTold) {
  Partitions one = partitions("echo MIG-1");
  ASSERT_TRUE(one.can_begin());
  one.begin(make_, now_s_);
  EXPECT_FALSE(one.can_begin());
  await_end(one);
  EXPECT_FALSE(one.can_begin()) << "a reading that has begun before does not show it";
  one.reading_has_begun();
  EXPECT_TRUE(one.can_begin());
  EXPECT_THAT(said_, ElementsAre("did make a 1g.5gb of GPU-1: MIG-1"));
}

TEST_F(PartitionsTest, WhatTheDriverRefusesIsTriedAgainAfterAWhile) {
  Partitions one = partitions("echo 'remuda: GPU-1: it is in use' >&2; exit 1");
  one.begin(make_, now_s_);
  await_end(one);
  EXPECT_THAT(said_, ElementsAre("cannot make a 1g.5gb of GPU-1: remuda: GPU-1: it is in use"));
  EXPECT_THAT(one.refused(now_s_ + 50), ElementsAre(make_));
  EXPECT_THAT(one.refused(now_s_ + 61), IsEmpty());
  one.reading_has_begun();
  EXPECT_TRUE(one.can_begin()) << "something else";
}

TEST_F(PartitionsTest, ADriverThatHangsIsGivenUp) {
  Partitions one = partitions("sleep 1000");
  one.begin(make_, now_s_);
  EXPECT_FALSE(one.step(now_s_ + 59));
  EXPECT_TRUE(one.step(now_s_ + 61));
  EXPECT_THAT(said_.at(0), HasSubstr("takes too long"));
}

TEST_F(PartitionsTest, WhatIsBeingTakenAwayIsGrantedToNobody) {
  Partitions other = partitions("sleep 1000");
  other.begin(make_, now_s_);
  EXPECT_THAT(other.held(), IsEmpty());
  Partitions one = partitions("sleep 1000");
  EXPECT_THAT(one.held(), IsEmpty());
  one.begin(remove_, now_s_);
  ASSERT_EQ(one.held().size(), 1);
  EXPECT_EQ(one.held()[0].device, "MIG-1");
}

TEST_F(PartitionsTest, ItsOwnAreThoseThatAreMarkedAndThere) {
  const std::string marks = folder_.path("marks");
  ASSERT_TRUE(mark_partition(marks, "MIG-1"));
  ASSERT_TRUE(mark_partition(marks, "MIG-GPU-1/2/0"));
  folder_.write("marks/old", "another-boot\nMIG-3\n");
  const Partitions one = partitions("true");
  EXPECT_THAT(one.own(machine_with({"MIG-1", "MIG-2", "MIG-3", "MIG-GPU-1/2/0"})),
              ElementsAre("MIG-1", "MIG-GPU-1/2/0"));
  EXPECT_THAT(one.own(machine_with({})), IsEmpty());
  EXPECT_THAT(one.own(machine_with({"MIG-1"})), ElementsAre("MIG-1")) << "a reading may be older than the mark";
  unmark_partition(marks, "MIG-1");
  EXPECT_THAT(marked_partitions(marks), ElementsAre("MIG-GPU-1/2/0"));
}

TEST_F(PartitionsTest, AnOldMarkWithoutItsPartitionIsForgotten) {
  const std::string marks = folder_.path("marks");
  ASSERT_TRUE(mark_partition(marks, "MIG-1"));
  for (const auto& entry : std::filesystem::directory_iterator(marks))
    std::filesystem::last_write_time(entry, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const Partitions one = partitions("true");
  EXPECT_THAT(one.own(machine_with({"MIG-1"})), ElementsAre("MIG-1"));
  Inventory unread = machine_with({"MIG-2"});
  unread.devices[0].uuid = Missing{MissingReason::lost, "the driver does not answer"};
  EXPECT_THAT(one.own(unread), IsEmpty());
  EXPECT_THAT(one.own(machine_with({"MIG-1"})), ElementsAre("MIG-1")) << "one that was not read may have been it";
  EXPECT_THAT(one.own(machine_with({})), IsEmpty());
  EXPECT_THAT(one.own(machine_with({"MIG-1"})), IsEmpty()) << "this one is another's";
}

TEST_F(PartitionsTest, WhatAnAgentBeforeHasBegunIsWaitedFor) {
  const std::string marks = folder_.path("marks");
  auto lock = lock_partitions(marks, "GPU-1");
  ASSERT_TRUE(lock);
  ASSERT_TRUE(write_intent(marks, {remove_, {}, 1}));
  Partitions one = partitions("true");
  EXPECT_THAT(one.refused(now_s_), ElementsAre(settle_));
  ASSERT_EQ(one.held().size(), 1);
  EXPECT_EQ(one.held()[0].device, "MIG-1") << "it is being taken away, so it is granted to nobody";
  EXPECT_FALSE(one.step(now_s_ += 0.1));
  EXPECT_LT(one.next_s(), now_s_ + 1);
  forget_intent(marks, "GPU-1");
  *lock = Fd();
  EXPECT_TRUE(one.step(now_s_ += 0.1)) << "the machine is to be read anew";
  EXPECT_FALSE(one.can_begin());
  one.reading_has_begun();
  EXPECT_TRUE(one.can_begin());
  EXPECT_THAT(one.held(), IsEmpty());
  EXPECT_THAT(one.refused(now_s_), IsEmpty());
  EXPECT_THAT(started_, IsEmpty());
}

TEST_F(PartitionsTest, WhatWasCutOffIsSettledFirst) {
  const std::string marks = folder_.path("marks");
  ASSERT_TRUE(lock_partitions(marks, "GPU-1"));
  ASSERT_TRUE(write_intent(marks, {make_, {}, {}}));
  Partitions one = partitions("rm " + marks + "/.*/change");
  EXPECT_THAT(one.refused(now_s_), ElementsAre(settle_));
  await_end(one);
  EXPECT_THAT(started_, ElementsAre(What::settle));
  EXPECT_THAT(said_, ElementsAre("did settle a change of GPU-1 that was cut off"));
  one.reading_has_begun();
  EXPECT_TRUE(one.can_begin());
  EXPECT_THAT(one.refused(now_s_), IsEmpty());
}

TEST_F(PartitionsTest, AGpuThatCannotBeSettledHoldsUpNoOther) {
  const std::string marks = folder_.path("marks");
  ASSERT_TRUE(lock_partitions(marks, "GPU-1"));
  ASSERT_TRUE(write_intent(marks, {remove_, {}, {}}));
  Partitions one = partitions("exit 1");
  await_end(one);
  one.reading_has_begun();
  EXPECT_TRUE(one.can_begin());
  EXPECT_THAT(one.refused(now_s_ + 1000), ElementsAre(settle_)) << "as long as it is not settled";
  one.begin({What::make, "GPU-2", "1g.5gb", ""}, now_s_);
  await_end(one);
  EXPECT_THAT(started_, ElementsAre(What::settle, What::make));
  one.step(now_s_ + 50);
  EXPECT_THAT(started_, ElementsAre(What::settle, What::make)) << "other changes do not make it tried sooner";
}

TEST_F(PartitionsTest, WhatIsAtWorkOnOneGpuHoldsUpNoSettlingOfAnother) {
  const std::string marks = folder_.path("marks");
  const auto lock = lock_partitions(marks, "GPU-1");
  ASSERT_TRUE(lock && lock_partitions(marks, "GPU-2"));
  ASSERT_TRUE(write_intent(marks, {remove_, {}, {}}));
  ASSERT_TRUE(write_intent(marks, {{What::make, "GPU-2", "1g.5gb", ""}, {}, {}}));
  Partitions one = partitions("exit 1");
  await_end(one);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("cannot settle a change of GPU-2")));
}

TEST_F(PartitionsTest, WhatCannotBeSettledIsTriedAgainAfterAWhile) {
  const std::string marks = folder_.path("marks");
  ASSERT_TRUE(lock_partitions(marks, "GPU-1"));
  ASSERT_TRUE(write_intent(marks, {remove_, {}, {}}));
  Partitions one = partitions("echo 'remuda: GPU-1: it is lost' >&2; exit 1");
  await_end(one);
  one.reading_has_begun();
  EXPECT_EQ(one.held().size(), 1);
  EXPECT_FALSE(one.step(now_s_ + 50));
  EXPECT_THAT(started_, ElementsAre(What::settle));
  EXPECT_FALSE(one.step(now_s_ + 61));
  EXPECT_THAT(started_, ElementsAre(What::settle, What::settle));
}

TEST_F(PartitionsTest, WhereNobodyCanBeStartedToSettleItThatIsToldOnceInAWhile) {
  const std::string marks = folder_.path("marks");
  ASSERT_TRUE(lock_partitions(marks, "GPU-1"));
  ASSERT_TRUE(write_intent(marks, {remove_, {}, {}}));
  Partitions one{marks, [](const PartitionChange&) { return failed("no process is left"); },
                 [this](const std::string& sentence) { said_.push_back(sentence); }};
  for (double s = 0; s < 59; s += 0.1) EXPECT_FALSE(one.step(now_s_ + s));
  EXPECT_THAT(said_, ElementsAre("cannot settle a change of GPU-1 that was cut off: no process is left"));
  EXPECT_GT(one.next_s(), now_s_ + 59);
  EXPECT_FALSE(one.step(now_s_ + 61));
  EXPECT_EQ(said_.size(), 2);
}

TEST(PartitionIntent, IsOfOneProcessOneGpuAndOneBoot) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("marks");
  EXPECT_FALSE(read_intent(folder, "GPU-1"));
  const PartitionIntent intent{{What::remove, "GPU-1", "", "MIG-1"}, {0, 3}, 2};
  {
    const auto lock = lock_partitions(folder, "GPU-1");
    ASSERT_TRUE(lock);
    EXPECT_EQ(lock_partitions(folder, "GPU-1").error().message, "another process is changing partitions of GPU-1");
    EXPECT_TRUE(lock_partitions(folder, "GPU-2"));
    ASSERT_TRUE(write_intent(folder, intent));
    ASSERT_EQ(left_changes(folder).size(), 1);
    EXPECT_TRUE(left_changes(folder)[0].is_at_work);
  }
  ASSERT_EQ(left_changes(folder).size(), 1);
  EXPECT_FALSE(left_changes(folder)[0].is_at_work);
  EXPECT_EQ(left_changes(folder)[0].change, intent.change);
  const auto read = read_intent(folder, "GPU-1");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->change, intent.change);
  EXPECT_EQ(read->before, intent.before);
  EXPECT_EQ(read->instance, intent.instance);
  EXPECT_FALSE(read_intent(folder, "GPU-2"));
  EXPECT_THAT(marked_partitions(folder), IsEmpty()) << "it is no mark";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    scratch.write("marks/" + entry.path().filename().string() + "/change",
                  R"({"boot": "another", "what": "remove", "gpu": "GPU-1"})");
  EXPECT_FALSE(read_intent(folder, "GPU-1")) << "no partition has outlived that";
  EXPECT_THAT(left_changes(folder), IsEmpty());
}

}  // namespace
}  // namespace remuda::agent
