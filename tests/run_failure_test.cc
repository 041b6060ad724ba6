// `remuda run` with failures of its environment: the disk, the folder, the database, the clock, a reused process id.
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "pool/pool.h"
#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

class RunFailure : public JobTest {
 protected:
  std::string remuda(const std::vector<std::string>& arguments) const {
    std::string text;
    for (const std::string& word : line(arguments)) text += shell_word(word) + " ";
    return text;
  }
  /// Runs a script in a mount namespace of its own; STATE is where the pool is.
  Finished with_own_mounts(const std::string& script) const {
    process::Environment environment = this->environment();
    environment.emplace_back("STATE", folder_.path("state"));
    return run({"unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", "mkdir -p $STATE; " + script},
               environment);
  }
  static bool may_mount() {
    return run({"unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "tmpfs", "/mnt"}).exit.ok();
  }

  std::string database() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path("state")))
      if (entry.path().filename() == "pool.db") return entry.path();
    throw std::runtime_error("there is no pool");
  }
  void change_pool(const std::function<void(pool::PoolState&)>& transition) const {
    auto pool = pool::Pool::open(std::filesystem::path(database()).parent_path());
    ASSERT_TRUE(pool) << pool.error().message;
    const auto changed = pool->change([&](pool::PoolState& state) -> Result<void> {
      transition(state);
      return {};
    });
    ASSERT_TRUE(changed) << changed.error().message;
  }
  /// Adds a job as if it had been running on all eight devices when its keeper, `keeper`, ended.
  void add_running_job(const process::ProcessId& keeper) const {
    EXPECT_EQ(ask({"ps"}).exit.status, 0);  // makes the pool
    change_pool([&](pool::PoolState& state) {
      pool::Job job{.id = state.next_job++,
                    .user = "ada",
                    .state = pool::JobState::running,
                    .keeper = keeper,
                    .processes = {keeper}};
      job.request.count = 8;
      for (int gpu = 0; gpu < 8; ++gpu) state.leases.push_back({job.id, fmt::format("gpu:{}", gpu), 1, 1, 0});
      state.jobs.push_back(std::move(job));
    });
  }
};

constexpr const char* kUntilTold = "echo $$ >\"$OUT/job\"; while ! test -e \"$OUT/go\"; do sleep 0.05; done; exit 7";

TEST_F(RunFailure, AFullDiskStartsNothingAndLosesNothing) {
  if (!may_mount()) GTEST_SKIP() << "this process may not mount a small disk";
  const std::string once = remuda({"run", "--", "echo", "ran"});
  const Finished finished =
      with_own_mounts("mount -t tmpfs -o size=512k tmpfs $STATE && " + once +
                      "&& cat /dev/zero >$STATE/full 2>/dev/null; " + once + "; echo $?; rm $STATE/full; " + once);
  EXPECT_EQ(finished.out, "ran\n125\nran\n") << finished;
  EXPECT_THAT(finished.err, AllOf(HasSubstr("remuda: cannot "), HasSubstr("pool.db"), HasSubstr("full"))) << finished;
}

TEST_F(RunFailure, ADiskThatFillsDoesNotDisturbTheJob) {
  if (!may_mount()) GTEST_SKIP() << "this process may not mount a small disk";
  const std::string job = remuda({"run", "-n", "8", "--", "/bin/sh", "-c", kUntilTold});
  const Finished finished = with_own_mounts(
      "mount -t tmpfs -o size=512k tmpfs $STATE; " + job + "& until test -e \"$OUT/job\"; do sleep 0.05; done;" +
      "cat /dev/zero >$STATE/full 2>/dev/null; echo >\"$OUT/go\"; wait $!; echo $?; rm $STATE/full; " +
      "for i in $(seq 600); do " + remuda({"ps"}) + "| grep Nobody && break; sleep 0.05; done; " +
      remuda({"why", "1"}));
  EXPECT_THAT(finished.out, StartsWith("7\nNobody holds a device\n")) << finished;
  EXPECT_THAT(finished.out, HasSubstr("exited with status 7")) << "its result comes into the pool later: " << finished;
  EXPECT_THAT(finished.err, HasSubstr("full")) << "its end could not be written at first: " << finished;
}

TEST_F(RunFailure, TheEndOfAJobWithALogIsRecordedLaterToo) {
  if (!may_mount()) GTEST_SKIP() << "this process may not mount a small disk";
  const Finished finished = with_own_mounts(
      "mount -t tmpfs -o size=1m tmpfs $STATE; " + remuda({"run", "-d", "--", "/bin/sh", "-c", kUntilTold}) +
      "; until test -e \"$OUT/job\"; do sleep 0.05; done; keeper=$(ps -o ppid= -p $(cat $OUT/job)); " +
      "cat /dev/zero >$STATE/full 2>/dev/null; echo >\"$OUT/go\"; " +
      "while kill -0 $(cat $OUT/job) 2>/dev/null; do sleep 0.05; done; sleep 1; rm $STATE/full; " +
      "for i in $(seq 600); do kill -0 $keeper 2>/dev/null || break; sleep 0.05; done; " + remuda({"why", "1"}));
  EXPECT_THAT(finished.out, HasSubstr("exited with status 7")) << finished;
}

TEST_F(RunFailure, AnArrayGoesOnOnceTheDiskHasRoom) {
  if (!may_mount()) GTEST_SKIP() << "this process may not mount a small disk";
  const std::string script = "echo $REMUDA_ARRAY_INDEX >>\"$OUT/ran\"; test $REMUDA_ARRAY_INDEX != 1 || " +
                             std::string("until test -e \"$OUT/go\"; do sleep 0.05; done");
  const std::string array = remuda({"run", "--array", "0-3%1", "--", "/bin/sh", "-c", script});
  const Finished finished = with_own_mounts(
      "mount -t tmpfs -o size=1m tmpfs $STATE; " + array + "2>$OUT/err & array=$!; " +
      "until grep -q 1 $OUT/ran; do sleep 0.05; done; cat /dev/zero >$STATE/full 2>/dev/null; echo >$OUT/go; " +
      "for i in $(seq 600); do grep -q 'tries again' $OUT/err && break; sleep 0.05; done; " +
      "rm $STATE/full; wait $array; echo $?; cat $OUT/ran; cat $OUT/err >&2");
  EXPECT_EQ(finished.out, "0\n0\n1\n2\n3\n") << finished;
}

TEST_F(RunFailure, AJobThatWaitsKeepsItsPlaceWhileTheDiskIsFull) {
  if (!may_mount()) GTEST_SKIP() << "this process may not mount a small disk";
  const std::string first = remuda({"run", "-n", "8", "-q", "--", "/bin/sh", "-c", kUntilTold});
  const std::string second = remuda({"run", "-n", "8", "--", "echo", "mine"});
  const Finished finished = with_own_mounts(
      "mount -t tmpfs -o size=512k tmpfs $STATE; " + first + "& until test -s $OUT/job; do sleep 0.05; done; " +
      second + "2>$OUT/err & second=$!; until test -s $OUT/err; do sleep 0.05; done; " +
      "cat /dev/zero >$STATE/full 2>/dev/null; kill -9 $(ps -o ppid= -p $(cat $OUT/job)); " +  // its keeper's
      "for i in $(seq 600); do grep -q 'tries again' $OUT/err && break; sleep 0.05; done; " +
      "rm $STATE/full; wait $second; echo $?; cat $OUT/err >&2");
  EXPECT_EQ(finished.out, "mine\n0\n") << finished;
  EXPECT_THAT(finished.err, HasSubstr("the disk is full; nothing was changed; tries again")) << finished;
}

TEST_F(RunFailure, AReadOnlyFolderIsSaid) {
  if (!may_mount()) GTEST_SKIP() << "this process may not mount a folder";
  const Finished finished =
      with_own_mounts(remuda({"ps"}) + "&& mount --bind $STATE $STATE && mount -o remount,bind,ro $STATE; " +
                      remuda({"run", "--", "echo", "ran"}) + "; echo $?; " + remuda({"ps"}) + "; echo $?; " +
                      remuda({"hold", "--export"}) + "; echo $?");
  EXPECT_EQ(finished.out, "Nobody holds a device\n125\n1\n(exit 125);\n125\n") << finished;
  EXPECT_THAT(finished.err, HasSubstr("pool.db: Read-only file system\n")) << finished;
}

TEST_F(RunFailure, ADatabaseThatIsDamagedStopsNoJobAndStartsNone) {
  const auto job = begin({"run", "-n", "8", "--", "/bin/sh", "-c", kUntilTold});
  pid_in("job");
  const std::string database = this->database();
  std::filesystem::resize_file(database, 100);
  const Finished refused = ask({"run", "--no-wait", "--", "echo", "twice"});
  EXPECT_EQ(refused.exit.status, 125) << refused;
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, AllOf(HasSubstr(database), Not(HasSubstr("bug")))) << refused;
  EXPECT_EQ(ask({"ps"}).exit.status, 1);
  folder_.write("go", "");
  const Finished finished = job->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 7) << finished;
  for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(database + part);
  EXPECT_EQ(ask({"run", "-n", "8", "--no-wait", "--", "echo", "anew"}).out, "anew\n");
}

TEST_F(RunFailure, AClockSetBackHurtsNobody) {
  const auto job = begin({"run", "-n", "8", "--time-limit", "1h", "--", "/bin/sh", "-c", kUntilTold});
  pid_in("job");
  const auto waiter = begin({"run", "-n", "8", "--", "echo", "next"});
  ASSERT_TRUE(comes_to_wait(1));
  change_pool([](pool::PoolState& state) {  // as written before the clock was set back by a day
    constexpr double kDay_s = 86400;
    for (const pool::Job& one : state.jobs) {
      pool::Job& job = state.jobs.edit(one);
      job.submitted_s += kDay_s, job.started_s += job.started_s > 0 ? kDay_s : 0;
    }
    for (pool::Lease& lease : state.leases) lease.since_s += kDay_s, lease.until_s += kDay_s;
  });
  EXPECT_THAT(leases(), SizeIs(8));
  EXPECT_THAT(ask({"ps"}).out, AllOf(HasSubstr(" 0 s "), Not(HasSubstr("-1")))) << ask({"ps"});
  EXPECT_THAT(ask({"why", "1", "2"}).out, AllOf(HasSubstr("Job 1 has run for 0 s"), HasSubstr("waited for 0 s")));
  EXPECT_EQ(ask({"run", "--no-wait", "--", "true"}).exit.status, 4);
  folder_.write("go", "");
  EXPECT_EQ(job->finish(kPatience_s).exit.status, 7);
  EXPECT_EQ(waiter->finish(kPatience_s).out, "next\n");
}

TEST_F(RunFailure, AProcessIdUsedAgainHoldsNothingAndIsLeftAlone) {
  RunningProgram innocent({"sleep", "1000"});
  ASSERT_TRUE(eventually([&] { return process::process_id(innocent.pid()).has_value(); }, kPatience_s));
  process::ProcessId before_reboot = *process::process_id(innocent.pid());
  before_reboot.boot_id = "00000000-0000-0000-0000-000000000000";
  process::ProcessId earlier = *process::process_id(innocent.pid());
  earlier.start_ticks -= 1;
  for (const process::ProcessId& keeper : {before_reboot, earlier}) {
    add_running_job(keeper);
    const Finished finished = ask({"run", "-n", "8", "--no-wait", "--", "echo", "ran"});
    EXPECT_EQ(finished.out, "ran\n") << finished;
  }
  EXPECT_THAT(ask({"why", "1"}).out, HasSubstr("the process that kept it is gone"));
  EXPECT_TRUE(is_running(innocent.pid()));
}

/// A machine described by a file of the test, so that it can change while jobs wait and run.
class MachineThatChanges : public RunFailure {
 protected:
  std::vector<std::string> machine() const override { return {"--machine", folder_.path("machine.json")}; }
  void set_gpus(size_t count) const {
    Json machine = parse_json(*read_text(REMUDA_MACHINES "/nv-dgx1-v100-8gpu-4nic.json"), "machine").value();
    while (machine["devices"].size() > count) machine["devices"].erase(machine["devices"].size() - 1);
    machine["links"] = Json::array();
    machine["nics"] = Json::array();
    folder_.write("new.json", machine.dump());
    std::filesystem::rename(folder_.path("new.json"), folder_.path("machine.json"));
  }
};

TEST_F(MachineThatChanges, AJobThatWaitedSeesADeviceThatHasComeSince) {
  set_gpus(1);
  const auto first = begin({"run", "--", "/bin/sh", "-c", kUntilTold});
  pid_in("job");
  const auto waiter = begin({"run", "--", "/bin/sh", "-c", "echo [$REMUDA_DEVICES] $CUDA_VISIBLE_DEVICES"});
  ASSERT_TRUE(comes_to_wait(1));
  set_gpus(2);
  const auto third = begin({"run", "-n", "2", "--", "true"});  // its keeper has seen both, and starts the second job
  EXPECT_EQ(waiter->finish(kPatience_s).out, "[gpu:1] 1\n");
  folder_.write("go", "");
  EXPECT_EQ(first->finish(kPatience_s).exit.status, 7);
  EXPECT_EQ(third->finish(kPatience_s).exit.status, 0);
}

TEST_F(MachineThatChanges, AJobIsRefusedADeviceThatHasGoneSince) {
  set_gpus(2);
  const auto first = begin({"run", "-n", "2", "--", "/bin/sh", "-c", kUntilTold});
  pid_in("job");
  const auto waiter = begin({"run", "--device", "gpu:1", "--", "echo", "ran"});
  ASSERT_TRUE(comes_to_wait(1));
  set_gpus(1);
  change_pool([](pool::PoolState& state) {  // as the keeper of the first job, which has not seen it go
    pool::Job& waiting = *state.find(2);
    std::erase_if(state.leases, [](const pool::Lease& lease) { return lease.device == "gpu:1"; });
    state.find(1)->request.count = 1;
    waiting.state = pool::JobState::running;
    state.leases.push_back({waiting.id, "gpu:1", 1, 1, 0});
  });
  const Finished refused = waiter->finish(kPatience_s);
  EXPECT_EQ(refused.exit.status, 125) << refused;
  EXPECT_THAT(refused.err, HasSubstr("it was granted gpu:1, which is not there any more")) << refused;
  folder_.write("go", "");
  EXPECT_EQ(first->finish(kPatience_s).exit.status, 7);
}

}  // namespace
}  // namespace remuda::tests
