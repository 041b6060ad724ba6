// What a policy refuses, and in which words; drained and reserved devices.
#include "pool/admission.h"

#include <gmock/gmock.h>

#include "policy/file.h"
#include "pool/testing/schedule.h"

namespace remuda::pool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kHour_s = 3600, kDay_s = 86400;
constexpr double kMonday = 4 * kDay_s;  // 1970-01-05

class Admission : public ScheduleTest {
 protected:
  void set_policy(const std::string& text) {
    const auto read = policy::parse_policy(text, "policy.toml");
    ASSERT_TRUE(read) << read.error().message;
    policy = *read;
  }
  std::string refusal(const Job& job) {
    const auto id = submit(state, job, box, kMonday, policy);
    return id ? "" : id.error().message;
  }
  static Job limited(double time_limit_s) {
    Job job = test_job("ada", 1);
    job.time_limit_s = time_limit_s;
    return job;
  }
};

TEST_F(Admission, LimitsThePriority) {
  set_policy("[[limit]]\npriority = 3\n");
  Job job = test_job("ada", 1);
  job.priority = 4;
  EXPECT_EQ(refusal(job), "ada may give priority 3 at the most, not 4 (policy.toml:2)");
  job.priority = 3;
  EXPECT_EQ(refusal(job), "");
  EXPECT_EQ(reprioritize(state, 1, 9, 'a', policy).error().message,
            "ada may give priority 3 at the most, not 9 (policy.toml:2)");
  EXPECT_TRUE(reprioritize(state, 1, 9, 0, policy)) << "root may";
}

TEST_F(Admission, LimitsTheTime) {
  set_policy("[[limit]]\nlongest = \"2h\"\ndefault = \"1h\"\n");
  EXPECT_EQ(refusal(limited(3 * kHour_s)), "a job of ada may run for 2 h at the most, not 3 h (policy.toml:2)");
  EXPECT_EQ(refusal(limited(0)), "");
  EXPECT_EQ(job(1).time_limit_s, kHour_s) << "the one it is given";
  set_policy("[[limit]]\nlongest = \"2h\"\n");
  EXPECT_EQ(refusal(limited(0)), "");
  EXPECT_EQ(job(2).time_limit_s, 2 * kHour_s) << "none is longer than the longest";
}

TEST_F(Admission, TheUsualTimeOfOneTableIsBoundByTheLongestOfAnother) {
  set_policy("[[limit]]\nlongest = \"2h\"\n[[limit]]\ndefault = \"4h\"\n");
  EXPECT_EQ(refusal(limited(0)), "");
  EXPECT_EQ(job(1).time_limit_s, 2 * kHour_s);
}

TEST_F(Admission, LimitsWhatIsTakenOfTheHost) {
  set_policy("[[limit]]\ncpus = 4\nhost_mem = \"8GiB\"\n");
  Job job = test_job("ada", 1);
  EXPECT_EQ(refusal(job),
            "ada may have 4 cores of the host at once: say with --cpus how many cores the job takes (policy.toml:2)");
  job.request.cores = 5;
  EXPECT_EQ(refusal(job), "ada may have 4 cores of the host at once, and 5 cores are wanted (policy.toml:2)");
  job.request.cores = 3;
  EXPECT_EQ(
      refusal(job),
      "ada may have 8 GiB of the host at once: say with --host-mem how much memory the job takes (policy.toml:3)");
  job.request.host_memory_bytes = int64_t{6} << 30;
  EXPECT_EQ(refusal(job), "");
  EXPECT_EQ(refusal(job), "") << "what is too much at once waits";
  EXPECT_THAT(look(kMonday), ElementsAre(1));
  EXPECT_EQ(this->job(2).why, "ada may have 4 cores of the host at once, and has 3 cores (policy.toml:2)");
  this->state.find(2)->request.cores = 1;
  look(kMonday);
  EXPECT_EQ(this->job(2).why, "ada may have 8 GiB of the host at once, and has 6 GiB (policy.toml:3)");
}

TEST_F(Admission, GivesAUsualPartOfTheHost) {
  set_policy("[[limit]]\ncpus = 4\n[[limit]]\ndefault_cpus = 6\ndefault_host_mem = \"2GiB\"\n");
  EXPECT_EQ(refusal(test_job("ada", 1)), "");
  EXPECT_EQ(job(1).request.cores, 4) << "no more than the user may have";
  EXPECT_EQ(job(1).request.host_memory_bytes, int64_t{2} << 30);
  Job root = test_job("root", 1);
  root.uid = 0;
  EXPECT_EQ(refusal(root), "");
  EXPECT_EQ(job(2).request.cores, 0) << "root is bound by nothing";
}

TEST_F(Admission, NamesTheRuleThatGaveWhatTheMachineIsNotKnownToHave) {
  set_policy("[[limit]]\ndefault_host_mem = \"2GiB\"\n");
  box.numa.clear();
  for (Device& device : box.devices)
    if (device.kind == DeviceKind::cpu) device.memory_bytes = Missing{MissingReason::unsupported, "no"};
  EXPECT_EQ(refusal(test_job("ada", 1)),
            "the memory of the host is not recorded, so none can be kept for a job; a job that asks for none is given "
            "some by policy.toml:2");
}

TEST_F(Admission, CountsAnArrayOnce) {
  set_policy("[[limit]]\nwaiting = 2\n");
  EXPECT_EQ(refusal(test_job("ada", 1)), "");
  state.find(1)->array = 1;
  Job index = test_job("ada", 1);
  index.array = 1;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refusal(index), "");
  EXPECT_EQ(refusal(test_job("ada", 1)), "");
  EXPECT_EQ(refusal(test_job("ada", 1)), "ada may have 2 waiting jobs, and has them (policy.toml:2)");
}

TEST_F(Admission, AnIndexHasThePriorityThatWasGivenToItsArray) {
  set_policy("[[limit]]\npriority = 0\n");
  EXPECT_EQ(refusal(test_job("ada", 1)), "");
  state.find(1)->array = 1;
  ASSERT_TRUE(reprioritize(state, 1, 10, 0, policy));
  Job index = test_job("ada", 1);
  index.array = 1;
  EXPECT_EQ(refusal(index), "");
  EXPECT_EQ(job(2).priority, 10);
}

/// A client that has all indices wait gets past no limit.
TEST_F(Admission, LetsNoMoreIndicesOfAnArrayWaitThanSuitAMachine) {
  set_policy("[[limit]]\nwaiting = 5\n");
  EXPECT_EQ(refusal(test_job("ada", 1)), "");
  state.find(1)->array = 1;
  Job index = test_job("ada", 1);
  index.array = 1;
  for (int i = 0; i < 64; ++i) EXPECT_EQ(refusal(index), "");
  EXPECT_EQ(refusal(index), "64 indices of array 1 wait, and no more do at once (policy.toml:2)");
  state.find(2)->state = JobState::ended;
  EXPECT_EQ(refusal(index), "") << "as one has gone, another one comes";
  set_policy("");
  EXPECT_EQ(refusal(index), "");
}

TEST_F(Admission, CountsGraceTimeIntoTheLongestTime) {
  set_policy("[[limit]]\nlongest = \"100s\"\n");
  const auto given = [&](double limit_s, double grace_s) {
    Job asked = limited(limit_s);
    asked.grace_s = grace_s;
    EXPECT_EQ(refusal(asked), "");
    const Job& job = state.jobs.back();
    return std::pair(job.time_limit_s, job.grace_s);
  };
  EXPECT_EQ(given(100, 20), std::pair(80.0, 20.0)) << "gone within 100 s";
  EXPECT_EQ(given(0, 20), std::pair(80.0, 20.0));
  EXPECT_EQ(given(50, 20), std::pair(50.0, 20.0));
  EXPECT_EQ(given(100, 500), std::pair(50.0, 50.0)) << "a half of it is grace time at the most";
  EXPECT_EQ(given(100, 0), std::pair(100.0, 0.0));
}

TEST_F(Admission, AJobMayUseItsGraceTimeOnAReservedDevice) {
  set_policy("[[reservation]]\ndevices = [\"gpu:0\"]\nusers = [\"bob\"]\nfrom = \"08:00\"\nto = \"18:00\"\n");
  Job asked = limited(kHour_s);
  EXPECT_THAT(barred_devices(asked, box, policy, kMonday + 6.5 * kHour_s), IsEmpty());
  asked.grace_s = kHour_s;
  EXPECT_EQ(barred_devices(asked, box, policy, kMonday + 6.5 * kHour_s).size(), 1U);
}

TEST_F(Admission, LimitsPartsOfDevices) {
  set_policy("[[limit]]\nusers = [\"eve\"]\nshare = true\n[[limit]]\nshare = false\n");
  EXPECT_EQ(refusal(test_job("ada", 1, 0.5)), "ada may not take a part of a device (policy.toml:5)");
  EXPECT_EQ(refusal(test_job("eve", 1, 0.5)), "");
  EXPECT_EQ(refusal(test_job("ada", 1)), "");
}

TEST_F(Admission, LimitsWaitingJobs) {
  set_policy("[[limit]]\nwaiting = 2\n");
  EXPECT_EQ(refusal(test_job("ada", 1)), "");
  EXPECT_EQ(refusal(test_job("ada", 1)), "");
  EXPECT_EQ(refusal(test_job("ada", 1)), "ada may have 2 waiting jobs, and has them (policy.toml:2)");
  EXPECT_EQ(refusal(test_job("bob", 1)), "") << "each has as many";
  state.find(1)->array = 1;
  Job index = test_job("ada", 1);
  index.array = 1;
  EXPECT_EQ(refusal(index), "") << "the array is counted";
}

TEST_F(Admission, LimitsDevicesAtOnce) {
  set_policy("[[limit]]\ngroups = [\"students\"]\ndevices = 2\n");
  Job large = test_job("ada", 3), small = test_job("ada", 1);
  large.groups = small.groups = {"students"};
  EXPECT_EQ(refusal(large), "ada may have 2 devices at once, and 3 are wanted (policy.toml:3)");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refusal(small), "");
  add("bob", 1, kMonday);
  EXPECT_THAT(look(kMonday), ElementsAre(1, 2, 4)) << "the third waits, and keeps nobody waiting";
  EXPECT_EQ(job(3).why, "ada may have 2 devices at once, and has 2 (policy.toml:3)");
  EXPECT_THAT(look(kMonday + kDay_s), IsEmpty());
  finish(1, kMonday + kDay_s);
  EXPECT_THAT(look(kMonday + kDay_s), ElementsAre(3));
}

TEST_F(Admission, LimitsDeviceHoursBySpeed) {
  set_policy("[[limit]]\ndevice_hours = 10\n");
  for (int i = 0; i < 4; ++i) {
    box.devices[static_cast<size_t>(i)].multiprocessors = i < 2 ? 100 : 50;
    box.devices[static_cast<size_t>(i)].sm_clock_max_mhz = 1000;
  }
  Job slow = test_job("ada", 2);
  slow.request.devices = {"gpu:2", "gpu:3"};
  add(slow, kMonday);
  EXPECT_THAT(look(kMonday), ElementsAre(1));
  EXPECT_DOUBLE_EQ(spent_s(state, "ada", kMonday + 9 * kHour_s), 9 * kHour_s) << "half of two is one";
  finish(1, kMonday + 9 * kHour_s);
  add("ada", 1, kMonday + 9 * kHour_s);
  EXPECT_THAT(look(kMonday + 9 * kHour_s), ElementsAre(2)) << "nine of ten";
  add("ada", 1, kMonday + 10 * kHour_s);
  EXPECT_THAT(look(kMonday + 10 * kHour_s), IsEmpty());
  EXPECT_EQ(job(3).why, "ada may have 10 device hours in 7 days, and has had them (policy.toml:2)");
  finish(2, kMonday + 10 * kHour_s);
  EXPECT_THAT(look(kMonday + 6.9 * kDay_s), IsEmpty());
  EXPECT_THAT(look(kMonday + 7 * kDay_s), ElementsAre(3)) << "Monday is not one of these seven days any more";
}

TEST_F(Admission, DeviceHoursOfAClockThatWasSetBackDoNotCount) {
  set_policy("[[limit]]\ndevice_hours = 10\n");
  add("ada", 1, kMonday);
  EXPECT_THAT(look(kMonday), ElementsAre(1));
  finish(1, kMonday + 365 * kDay_s);
  add("ada", 1, kMonday + 365 * kDay_s);
  EXPECT_THAT(look(kMonday + 365 * kDay_s), IsEmpty()) << "it has had seven days";
  EXPECT_THAT(look(kMonday + kHour_s), ElementsAre(2)) << "none of these days has come yet";
  EXPECT_DOUBLE_EQ(spent_s(state, "ada", kMonday + kHour_s), 0);
}

TEST_F(Admission, IsNotForRoot) {
  set_policy("[[limit]]\npriority = 0\ndevices = 0\nwaiting = 0\nlongest = \"1h\"\n");
  Job job = test_job("root", 4);
  job.uid = 0;
  job.priority = 5;
  EXPECT_EQ(refusal(job), "");
  EXPECT_THAT(look(kMonday), ElementsAre(1));
}

TEST_F(Admission, ReservesDevicesAtTheirHours) {
  set_policy(
      "[[reservation]]\ndevices = [\"gpu:0\", \"gpu:1\", \"gpu:9\"]\ngroups = [\"course\"]\nfrom = \"08:00\"\nto = "
      "\"18:00\"\n");
  Job two = test_job("ada", 2);
  two.request.devices = {"gpu:0", "gpu:1"};
  add(two, kMonday);
  two.time_limit_s = 8 * kHour_s;
  two.user = "bob";
  add(two, kMonday);
  EXPECT_THAT(look(kMonday), ElementsAre(2)) << "it ends at eight";
  EXPECT_THAT(job(1).why,
              HasSubstr("gpu:0 is reserved for group course every day 08:00-18:00, and the job might not end "
                        "before (policy.toml:1)"));
  finish(2, kMonday + 8 * kHour_s);
  two.groups = {"course"};
  add(two, kMonday + 8 * kHour_s);
  EXPECT_THAT(look(kMonday + 8 * kHour_s), ElementsAre(3));
  finish(3, kMonday + 9 * kHour_s);
  look(kMonday + 9 * kHour_s);
  EXPECT_THAT(job(1).why, HasSubstr("gpu:0 is reserved for group course (policy.toml:1)"));
  const PoolState before = state;
  look(kMonday + 10 * kHour_s);
  EXPECT_EQ(state, before);
}

TEST_F(Admission, ADrainedDeviceIsGrantedToNobody) {
  add("ada", 1);
  look();
  ASSERT_TRUE(drain(state, {"gpu:0", "its fan is broken", "root", 100}));
  ASSERT_TRUE(drain(state, {"gpu:3", "old", "root", 100}));
  ASSERT_TRUE(drain(state, {"gpu:3", "dead", "root", 120}));
  ASSERT_EQ(state.drains.size(), 2U);
  EXPECT_EQ(state.drains[1].reason, "dead");
  add("bob", 2);
  add("eve", 1);
  EXPECT_THAT(look(), ElementsAre(2));
  EXPECT_THAT(devices(2), ElementsAre("gpu:1", "gpu:2"));
  EXPECT_THAT(job(3).why, HasSubstr("gpu:0 is drained: its fan is broken"));
  EXPECT_EQ(job(1).state, JobState::running) << "it goes on";
  finish(1, 200);
  EXPECT_THAT(look(200), IsEmpty());
  ASSERT_TRUE(undrain(state, "gpu:0", "gpu:0"));
  EXPECT_EQ(undrain(state, "gpu:0", "gpu:0").error().message, "gpu:0 is not drained");
  EXPECT_EQ(drain(state, {"gpu:0", "", "root", 100}).error().message, "a drain needs a reason, which others will read");
  EXPECT_THAT(look(200), ElementsAre(3));
}

TEST_F(Admission, WhatOthersGiveOutIsGrantedToNobodyAndAJobForItAloneIsRefused) {
  const std::vector<Allocation> others{{"gpu:0", "Slurm", "slurm job 7 (ana)", "srun or sbatch"},
                                       {"gpu:1", "Slurm", "", "srun or sbatch"}};
  const auto held = held_by_allocations(others);
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held[0].barred, "is held by slurm job 7 (ana), and is Slurm's, to be had with srun or sbatch");
  EXPECT_EQ(held[0].holder, "slurm job 7 (ana)");
  EXPECT_EQ(held[1].barred, "is Slurm's, to be had with srun or sbatch");
  Job job = test_job("ada", 2);
  EXPECT_TRUE(check_not_given_out(job, box, others)) << "two are left";
  job.request.count = 3;
  const auto refused = check_not_given_out(job, box, others);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::never);
  EXPECT_EQ(refused.error().message,
            "the devices that suit are granted to nobody here: gpu:0 is held by slurm job 7 (ana), and is Slurm's, to "
            "be had with srun or sbatch; gpu:1 is Slurm's, to be had with srun or sbatch");
  job.request.count = 5;
  EXPECT_TRUE(check_not_given_out(job, box, others)) << "that is refused for another reason";
  EXPECT_TRUE(check_not_given_out(job, box, {}));
}

}  // namespace
}  // namespace remuda::pool
