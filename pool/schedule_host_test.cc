// Cores and memory of the host, as jobs get them, wait for them and give them back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pool/testing/schedule.h"

namespace remuda::pool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ScheduleHost : public ScheduleTest {};

Job with_host(const std::string& user, int cores, int64_t gib) {
  Job job = test_job(user, 1);
  job.request.cores = cores;
  job.request.host_memory_bytes = gib << 30;
  return job;
}

TEST_F(ScheduleHost, GivesEachCoreToOneJob) {
  add(with_host("ada", 3, 0));
  add(with_host("bob", 4, 0));
  add(with_host("eve", 2, 0));
  add("eve", 1);
  EXPECT_THAT(look(), ElementsAre(1, 2, 4)) << "of eight cores one is left, and devices are";
  EXPECT_THAT(job(1).cores, ElementsAre(0, 1, 2));
  EXPECT_THAT(job(2).cores, ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(job(3).why, "2 cores of the host are wanted, and 1 of 8 is free: ada (job 1) holds 3, bob (job 2) holds 4");
  finish(1, 200);
  EXPECT_THAT(look(200), ElementsAre(3));
  EXPECT_THAT(job(3).cores, ElementsAre(0, 1));
  requeue(state, 3, policy, 300);
  EXPECT_THAT(job(3).cores, IsEmpty());
}

TEST_F(ScheduleHost, NeverLeasesMoreMemoryThanTheHostHas) {
  add(with_host("ada", 0, 20));
  add(with_host("bob", 0, 13));
  EXPECT_THAT(look(), ElementsAre(1));
  EXPECT_EQ(job(2).why,
            "13 GiB of the host's memory are wanted, and 12 GiB of 32 GiB are free: ada (job 1) holds 20 GiB");
  finish(1, 200);
  EXPECT_THAT(look(200), ElementsAre(2));
  EXPECT_EQ(submit(state, with_host("eve", 0, 33), box, 200).error().message,
            "the host has 32 GiB of memory; 33 GiB are wanted");
}

TEST_F(ScheduleHost, KeepsCoresForWhoHasWaitedLong) {
  policy.patience_s = 50;
  add(with_host("ada", 4, 0));
  look();
  add(with_host("bob", 6, 0));
  look(200);
  add(with_host("eve", 3, 0), 200);
  EXPECT_THAT(look(200), IsEmpty());
  EXPECT_THAT(job(3).why, HasSubstr("bob (job 2, for which it is kept) holds 6"));
  state.find(3)->request.cores = 2;
  EXPECT_THAT(look(200), ElementsAre(3)) << "eight are there, and six are kept";
}

TEST_F(ScheduleHost, MakesRoomForCores) {
  Job sweep = with_host("ada", 8, 0);
  sweep.preemptible = true;
  add(sweep);
  look();
  Job urgent = with_host("bob", 1, 0);
  urgent.priority = 5;
  add(urgent);
  look();
  EXPECT_EQ(job(1).preempted_by, 2);
  requeue(state, 1, policy, 200);
  EXPECT_THAT(look(200), ElementsAre(2));
}

TEST_F(ScheduleHost, MakesRoomForCoresThatAJobOnAnotherDeviceHolds) {
  for (const bool is_memory : {false, true}) {
    state = {};
    Job sweep = is_memory ? with_host("ada", 0, 32) : with_host("ada", 8, 0);
    sweep.preemptible = true;
    sweep.request.devices = {"gpu:0"};
    add(sweep);
    look();
    Job urgent = is_memory ? with_host("bob", 0, 1) : with_host("bob", 1, 0);
    urgent.priority = 5;
    urgent.request.devices = {"gpu:1"};
    add(urgent);
    look();
    EXPECT_EQ(job(1).preempted_by, 2);
    EXPECT_THAT(job(2).why, HasSubstr("job 1 makes room for it"));
    requeue(state, 1, policy, 200);
    EXPECT_THAT(look(200), ElementsAre(2));
  }
}

TEST_F(ScheduleHost, MakesRoomByNoMoreThanAreInTheWay) {
  for (const char* device : {"gpu:0", "gpu:1", "gpu:2"}) {
    Job sweep = with_host("ada", 2, 0);
    sweep.preemptible = true;
    sweep.request.devices = {device};
    add(sweep);
  }
  look();
  Job urgent = with_host("bob", 4, 0);
  urgent.priority = 5;
  urgent.request.devices = {"gpu:0"};
  add(urgent);
  look();
  EXPECT_EQ(job(1).preempted_by, 4) << "it has the device, and two cores; two more are free";
  EXPECT_EQ(job(2).preempted_by, 0);
  EXPECT_EQ(job(3).preempted_by, 0);
}

}  // namespace
}  // namespace remuda::pool
