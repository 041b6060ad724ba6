#include "cli/jobs/waiting.h"

#include <gmock/gmock.h>

namespace remuda::cli {
namespace {

class Waiting : public testing::Test {
 protected:
  Waiting() {
    for (int i = 0; i < 4; ++i)
      machine_.devices.push_back({.id = "GPU-" + std::to_string(i), .kind = DeviceKind::gpu, .index = i});
    state_.jobs.push_back(job(1, 0));
    state_.jobs.back().state = pool::JobState::running;
    hold("GPU-0");
  }
  static pool::Job job(int64_t id, int count) {
    pool::Job job;
    job.id = id;
    job.user = "alice";
    job.request.count = count;
    return job;
  }
  void hold(const std::string& device) { state_.leases.push_back({.job = 1, .device = device}); }
  std::string text(const pool::Job& job, const pool::Job* before = nullptr) {
    return WaitingReasons(state_, machine_, foreign_, policy_, kNow_s).text(job, before);
  }

  static constexpr double kNow_s = 1000;
  pool::Policy policy_;
  Inventory machine_{.host = "box"};
  pool::PoolState state_;
  std::vector<place::Held> foreign_;
};

TEST_F(Waiting, CountsWhatIsFree) {
  EXPECT_EQ(text(job(2, 4)), "4 wanted, 3 free");
  hold("GPU-1");
  foreign_.push_back({.device = "GPU-2", .holder = "bob (process 7)"});
  EXPECT_EQ(text(job(2, 4)), "4 wanted, 1 free");
  hold("GPU-3");
  EXPECT_EQ(text(job(2, 1)), "1 wanted, 0 free");
}

TEST_F(Waiting, CountsOnlyWhatWouldDo) {
  pool::Job named = job(2, 2);
  named.request.devices = {"gpu:0", "gpu:1"};
  EXPECT_EQ(text(named), "2 wanted, 1 free");
  machine_.devices[3].model = "another";
  EXPECT_EQ(text(job(3, 3)), "3 wanted, 2 free of one model");
}

TEST_F(Waiting, NamesACauseThatIsNotTheNumberOfDevices) {
  pool::Job paused = job(2, 1), later = job(3, 1), limited = job(4, 1), barred = job(5, 1), unlike = job(6, 3);
  paused.paused = true;
  EXPECT_EQ(text(paused), "paused");
  later.begin_s = kNow_s + 7200;
  EXPECT_EQ(text(later), "begins in 2 h");
  policy_.limits.push_back({.devices = policy::Rule<int>{1, "policy.toml:3"}});
  limited.uid = 1000;
  const pool::Job before = job(1, 1);
  EXPECT_EQ(text(limited, &before), "alice may have 1 device at once, and has 1 (policy.toml:3)");
  barred.why = "gpu:1 is reserved for bob (policy.toml:7)";
  EXPECT_EQ(text(barred), barred.why);
  unlike.why = "no 3 of them are alike";
  machine_.devices[3].model = "another";
  EXPECT_EQ(text(unlike), unlike.why);
}

TEST_F(Waiting, NamesThePolicyThatCannotBeRead) {
  pool::Job held_back = job(2, 1);
  const pool::Job before = job(1, 1);
  held_back.why = "no job starts while the policy is wrong: policy.toml:3: limit.devices is true";
  EXPECT_EQ(text(held_back, &before), held_back.why);
}

TEST_F(Waiting, CountsWhatIsFreeOfTheHost) {
  machine_.numa = {{.node = 0, .cores = std::vector{0, 1, 2, 3}, .memory_bytes = int64_t{16} << 30}};
  state_.jobs.front().cores = {0, 1, 2};
  state_.jobs.front().request.cores = 3;
  state_.jobs.front().request.host_memory_bytes = int64_t{12} << 30;
  pool::Job wants_cores = job(2, 1), wants_memory = job(3, 1), wants_all = job(4, 4);
  wants_cores.request.cores = wants_all.request.cores = 2;
  wants_memory.request.host_memory_bytes = int64_t{8} << 30;
  EXPECT_EQ(text(wants_cores), "2 cores wanted, 1 free");
  EXPECT_EQ(text(wants_memory), "8 GiB of the host wanted, 4 GiB free");
  EXPECT_EQ(text(wants_all), "4 wanted, 3 free") << "devices come first";
  wants_cores.request.cores = 1;
  EXPECT_EQ(text(wants_cores), "1 wanted, 1 free") << "it can start";
}

TEST_F(Waiting, NamesTheJobThatGoesBefore) {
  const pool::Job before = job(4, 4), after = job(5, 1);
  EXPECT_EQ(text(after, &before), "1 wanted, 1 free; behind job 4");
  pool::Job of_array = job(6, 4);
  of_array.array = 3;
  of_array.array_index = 7;
  EXPECT_EQ(text(after, &of_array), "1 wanted, 1 free; behind job 3.7");
}

TEST_F(Waiting, NamesWhatMustEndFirst) {
  pool::Job after = job(5, 1);
  after.after = {1, 9};
  state_.jobs.push_back(job(9, 1));
  EXPECT_EQ(text(after), "after job 1, 9");
  state_.jobs.back().state = pool::JobState::ended;
  EXPECT_EQ(text(after), "after job 1");
}

TEST_F(Waiting, NamesWhatMakesRoom) {
  const pool::Job urgent = job(5, 4), before = job(4, 1);
  state_.jobs.front().preempted_by = 5;
  EXPECT_EQ(text(urgent, &before), "4 wanted, 3 free; job 1 makes room");
}

TEST_F(Waiting, ReportsDevicesThatAreGone) {
  pool::Job named = job(2, 1);
  named.request.devices = {"GPU-77"};
  EXPECT_EQ(text(named), "no such devices now");
}

}  // namespace
}  // namespace remuda::cli
