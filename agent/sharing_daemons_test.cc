#include "agent/sharing_daemons.h"

#include <fmt/format.h>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "agent/testing/service_fixture.h"
#include "base/env.h"
#include "base/file.h"
#include "confine/cgroup.h"

namespace remuda::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The maker's control program, as far as it is used: with -d it leaves a daemon behind.
constexpr const char* kControl = R"(#!/bin/sh
case "$1" in
-d) setsid sh -c 'echo $$ >"$CUDA_MPS_PIPE_DIRECTORY/pid"; exec sleep 1000' </dev/null >/dev/null 2>&1 &
    while ! test -e "$CUDA_MPS_PIPE_DIRECTORY/pid"; do sleep 0.01; done ;;
esac
)";

class SharingDaemonsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (confine::job_places().empty()) GTEST_SKIP() << "may not make cgroups here";
    folder_.write("bin/nvidia-cuda-mps-control", kControl);
    ::chmod(folder_.path("bin/nvidia-cuda-mps-control").c_str(), 0755);
    path_ = env::get(env::path).value_or("");
    ::setenv("PATH", (folder_.path("bin") + ":" + path_).c_str(), 1);
    machine_ = box_of(2);
    for (Device& device : machine_.devices) {
      device.vendor = "NVIDIA";
      device.compute_capability = std::string("8.0");
      device.uuid = "GPU-" + device.id;
      device.memory_bytes = int64_t{16} << 30;
    }
  }
  void TearDown() override {
    if (path_.empty()) return;
    ::setenv("PATH", path_.c_str(), 1);
    daemons_.see({}, now_s_);
    EXPECT_TRUE(settles([&] { return processes().empty(); })) << "a daemon is left";
  }
  SharingDaemons::Options options() const { return {folder_.path("pool"), folder_.path("mps")}; }
  /// A job of this user, with a part of the first device, that runs.
  const pool::Job& add_job() {
    pool::Job job = job_named("part");
    job.user = "ada";
    job.id = state_.next_job++;
    job.uid = static_cast<int>(::geteuid());
    job.keeper = process::own_process_id();
    job.state = pool::JobState::running;
    job.request.share = 0.25;
    state_.leases.push_back({job.id, "gpu:0", 0.25, 10, 0});
    state_.jobs.push_back(std::move(job));
    return state_.jobs.back();
  }
  std::vector<std::string> begin(int64_t job, bool is_allowed = true) {
    const auto record = daemons_.begin(state_, *state_.find(job), machine_, is_allowed, now_s_);
    if (record) state_.find(job)->daemons = record->devices;
    return record ? record->devices : std::vector<std::string>{"no record"};
  }
  void end(int64_t job) {
    std::erase_if(state_.leases, [&](const pool::Lease& lease) { return lease.job == job; });
  }
  std::vector<process::ProcessId> processes() {
    std::vector<process::ProcessId> all;
    for (const std::string& cgroup : cgroups_)
      for (const process::ProcessId& one : confine::cgroup_members(cgroup)) all.push_back(one);
    return all;
  }
  /// In a time that goes no faster than the real one, as what is started is given an end.
  bool settles(const std::function<bool()>& condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) {
      daemons_.step(now_s_ += 0.01);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return condition();
  }
  /// The daemon is there, and what has started it has ended.
  bool serves() {
    const auto all = processes();
    return all.size() == 1 && read_text(fmt::format("/proc/{}/comm", all[0].pid), 64).value_or("") == "sleep\n";
  }
  void note_started() {
    for (const auto& one : daemons_.take_started()) cgroups_.push_back(one.cgroup);
  }

  ScratchFolder folder_;
  std::string path_;
  Inventory machine_;
  pool::PoolState state_;
  double now_s_ = 100;
  SharingDaemons daemons_{options()};
  std::vector<std::string> cgroups_;
};

TEST_F(SharingDaemonsTest, OneServesAllPartsOfAUserUntilTheLastHasEnded) {
  const int64_t first = add_job().id, second = add_job().id;
  EXPECT_THAT(begin(first), ElementsAre("gpu:0"));
  EXPECT_THAT(begin(second), ElementsAre("gpu:0"));
  note_started();
  ASSERT_THAT(cgroups_, SizeIs(1));
  EXPECT_TRUE(settles([&] { return serves(); }));
  end(first);
  EXPECT_THAT(daemons_.see(state_, now_s_), IsEmpty());
  EXPECT_THAT(processes(), SizeIs(1));
  end(second);
  EXPECT_THAT(daemons_.see(state_, now_s_), ElementsAre(-1));
  EXPECT_TRUE(settles([&] { return processes().empty(); }));
  EXPECT_NE(::access((folder_.path("mps/") + std::to_string(::geteuid())).c_str(), F_OK), 0) << "its folder is left";
}

TEST_F(SharingDaemonsTest, ThereIsNoneWhereThePolicyDoesNotAllowIt) {
  const int64_t job = add_job().id;
  EXPECT_THAT(begin(job, false), IsEmpty());
  EXPECT_THAT(daemons_.take_started(), IsEmpty());
}

TEST_F(SharingDaemonsTest, ThereIsNoneForWholeDevices) {
  add_job();
  state_.jobs.back().request.share = state_.leases.back().share = 1;
  EXPECT_THAT(begin(state_.jobs.back().id), ElementsAre("no record"));
}

TEST_F(SharingDaemonsTest, ThereIsNoneForAUserBesideAnother) {
  const int64_t first = add_job().id;
  state_.jobs.back().uid += 1;
  state_.leases.back().since_s = 5;
  const int64_t second = add_job().id;
  EXPECT_THAT(begin(second), IsEmpty()) << first;
}

TEST_F(SharingDaemonsTest, TheNextAgentFindsThoseThatAreNeededAndEndsTheOthers) {
  const int64_t job = add_job().id;
  begin(job);
  note_started();
  ASSERT_TRUE(settles([&] { return serves(); }));
  SharingDaemons next(options());
  EXPECT_THAT(next.find_again(state_, now_s_), SizeIs(1));
  EXPECT_THAT(processes(), SizeIs(1));
  SharingDaemons last(options());
  EXPECT_THAT(last.find_again({}, now_s_), IsEmpty());
  EXPECT_TRUE(settles([&] {
    last.step(now_s_);
    return processes().empty();
  }));
}

}  // namespace
}  // namespace remuda::agent
