// A run that loses a rank goes on with the others, and learns what it would have learned.
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/elastic_job.h"

namespace remuda::tests {
namespace {

using ::testing::HasSubstr;

/// A run that may lose ranks.
class ElasticRun {
 public:
  explicit ElasticRun(const std::vector<std::string>& settings, const JobText& job = three_ranks())
      : folder_(job_folder(job)), program_(command(settings)) {}

  /// Once the run is past so many epochs.
  pid_t worker(size_t rank, const std::string& after) {
    const bool there = eventually([&] { return program_.err().find(after) != std::string::npos; }, 60);
    EXPECT_TRUE(there) << program_.err();
    if (workers_.empty()) workers_ = children_of(program_.pid());
    return workers_.at(rank);
  }
  void kill(size_t rank, const std::string& after, int signal = SIGKILL) { ::kill(worker(rank, after), signal); }

  Json report() {
    const Finished finished = program_.finish(120);
    EXPECT_TRUE(finished.exit.ok()) << finished;
    printed_ = finished.err + finished.out;
    const auto report = parse_json(folder_.read("report.json"), "report.json");
    return report ? *report : Json();
  }
  Finished finish() { return program_.finish(120); }
  RunningProgram& program() { return program_; }
  const ScratchFolder& folder() const { return folder_; }
  const std::string& printed() const { return printed_; }

  std::vector<std::string> command(const std::vector<std::string>& settings) const {
    std::vector<std::string> all{"--json", folder_.path("report.json")};
    for (const std::string& setting : settings) {
      all.emplace_back("--set");
      all.emplace_back(setting == "checkpoint.folder" ? setting + "=" + folder_.path("kept") : setting);
    }
    return train_command(folder_, all);
  }

 private:
  ScratchFolder folder_;
  RunningProgram program_;
  std::vector<pid_t> workers_;
  std::string printed_;
};

const std::vector<std::string> kWithCheckpoint{"elastic.ranks_lost=2", "checkpoint.folder", "checkpoint.every_steps=5"};

class TrainElastic : public ::testing::Test {
 protected:
  static void expect_same_weights(const ElasticRun& run) {
    EXPECT_LT(file_difference(run.folder().path("out.safetensors"), whole_run().path("out.safetensors")), 1e-6);
  }
};

TEST_F(TrainElastic, WhicheverRankIsKilledTheOthersLearnTheSame) {
  REMUDA_NEEDS_TWO_CORES();
  for (const size_t rank : {0, 1, 2}) {
    SCOPED_TRACE(rank);
    ElasticRun run(kWithCheckpoint);
    run.kill(rank, "checkpoint in");
    const Json report = run.report();
    ASSERT_FALSE(report.is_null()) << run.printed();
    EXPECT_EQ(report["steps"], kElasticSteps);
    EXPECT_EQ(report["devices"].size(), 2U);
    ASSERT_EQ(report["lost_ranks"].size(), 1U);
    const Json& loss = report["lost_ranks"][0];
    EXPECT_EQ(loss["rank"], rank);
    EXPECT_EQ(loss["cause"], "killed by signal 9 (Killed)");
    EXPECT_EQ(loss["state"], "checkpoint");
    EXPECT_GE(loss["step"], loss["resumed_from"]);
    EXPECT_THAT(run.printed(), HasSubstr("was lost: killed by signal 9"));
    EXPECT_THAT(run.printed(), HasSubstr("goes on after step"));
    EXPECT_THAT(run.printed(), HasSubstr("from the checkpoint, and repeated"));
    expect_same_weights(run);
  }
}

TEST_F(TrainElastic, WithBuddiesNoStepIsLost) {
  REMUDA_NEEDS_TWO_CORES();
  ElasticRun run({"elastic.ranks_lost=2", "elastic.buddy=true"});
  run.kill(1, "epoch 4/");
  run.kill(0, "goes on after step");
  const Json report = run.report();
  ASSERT_EQ(report["lost_ranks"].size(), 2U) << run.printed();
  for (const Json& loss : report["lost_ranks"]) {
    EXPECT_EQ(loss["state"], "memory");
    EXPECT_LE(loss["step"].get<int>() - loss["resumed_from"].get<int>(), 1);
  }
  EXPECT_EQ(report["steps"], kElasticSteps);
  expect_same_weights(run);
}

/// Rank 1 makes the batches of rank 0, and rank 2 owns its state.
JobText three_roles() {
  JobText job = three_ranks();
  job.balance = "policy = 'even'\n";
  const std::string second = "shared = true\nslowdown = 20\n", third = "shared = true\nslowdown = 40\n";
  job.devices.insert(job.devices.find(third) + third.size(), "role = 'state'\n");
  job.devices.insert(job.devices.find(second) + second.size(), "role = 'preprocess'\n");
  return job;
}

TEST_F(TrainElastic, WithoutADeviceOfAnotherRoleTheOthersDoItsPart) {
  REMUDA_NEEDS_TWO_CORES();
  for (const size_t rank : {1, 2}) {
    SCOPED_TRACE(rank);
    ElasticRun run({"elastic.ranks_lost=1", "elastic.buddy=true"}, three_roles());
    run.kill(rank, "epoch 4/");
    const Json report = run.report();
    ASSERT_EQ(report["lost_ranks"].size(), 1U) << run.printed();
    EXPECT_EQ(report["lost_ranks"][0]["rank"], rank);
    EXPECT_EQ(report["lost_ranks"][0]["state"], "memory");
    EXPECT_EQ(report["devices"][0]["state_share"], rank == 1 ? 0 : 1);
    EXPECT_EQ(report["devices"][1]["role"], rank == 1 ? "state" : "preprocess");
    expect_same_weights(run);
  }
}

TEST_F(TrainElastic, WithoutADeviceThatComputesTheRunEnds) {
  REMUDA_NEEDS_TWO_CORES();
  ElasticRun run({"elastic.ranks_lost=1", "elastic.buddy=true"}, three_roles());
  run.kill(0, "epoch 4/");
  const Finished finished = run.finish();
  EXPECT_EQ(finished.exit.status, 1) << finished;
  EXPECT_THAT(finished.err, HasSubstr("no device that takes samples is left"));
}

TEST_F(TrainElastic, TwoAreLostOneAfterTheOther) {
  REMUDA_NEEDS_TWO_CORES();
  ElasticRun run(kWithCheckpoint);
  run.kill(0, "checkpoint in");
  run.kill(1, "goes on after step");
  const Json report = run.report();
  ASSERT_EQ(report["lost_ranks"].size(), 2U) << run.printed();
  EXPECT_EQ(report["devices"].size(), 1U);
  EXPECT_EQ(report["lost_ranks"][1]["rank"], 1) << "by the number that it began with";
  expect_same_weights(run);
}

TEST_F(TrainElastic, ARankThatHangsIsLostOnceTheOthersHaveWaited) {
  REMUDA_NEEDS_TWO_CORES();
  std::vector<std::string> settings = kWithCheckpoint;
  settings.emplace_back("elastic.timeout_s=8");
  ElasticRun run(settings);
  run.kill(1, "checkpoint in", SIGSTOP);
  const Json report = run.report();
  ASSERT_EQ(report["lost_ranks"].size(), 1U) << run.printed();
  EXPECT_EQ(report["lost_ranks"][0]["rank"], 1);
  EXPECT_THAT(report["lost_ranks"][0]["cause"].get<std::string>(), HasSubstr("went silent"));
  expect_same_weights(run);
}

TEST_F(TrainElastic, WithoutAStateTheRunEndsAndSaysWhatKeepsOne) {
  REMUDA_NEEDS_TWO_CORES();
  ElasticRun run({"elastic.ranks_lost=1"});
  run.kill(1, "epoch 4/");
  const Finished finished = run.finish();
  EXPECT_EQ(finished.exit.status, 1) << finished;
  EXPECT_THAT(finished.err, HasSubstr("nothing holds the state of the run: elastic.buddy keeps it in memory"));
}

/// Rank 1 is killed, and rank 2 notices it only once the run has been told to stop.
void stop_after_a_loss(ElasticRun& run) {
  const pid_t slow = run.worker(2, "epoch 4/");
  ::kill(slow, SIGSTOP);
  run.kill(1, "epoch 4/");
  run.program().signal(SIGTERM);
  EXPECT_TRUE(eventually([&] { return run.program().err().find("stopping after") != std::string::npos; }, 30));
  ::kill(slow, SIGCONT);
}

TEST_F(TrainElastic, ARunThatIsStoppedWhileItsRanksRegroupKeepsItsState) {
  REMUDA_NEEDS_TWO_CORES();
  ElasticRun run({"elastic.ranks_lost=1", "elastic.buddy=true", "checkpoint.folder"});
  stop_after_a_loss(run);
  const Finished finished = run.finish();
  EXPECT_EQ(finished.exit.status, 128 + SIGTERM) << finished;
  const auto report = parse_json(run.folder().read("report.json"), "report.json");
  ASSERT_TRUE(report) << finished;
  EXPECT_EQ((*report)["stopped"], true);
  EXPECT_EQ((*report)["lost_ranks"][0]["state"], "memory");
  EXPECT_EQ((*report)["checkpoints"]["written"], 1) << finished;
  const Finished rest = tests::run(run.command({"checkpoint.folder", "checkpoint.resume=on"}));
  EXPECT_EQ(rest.exit.status, 0) << rest;
  EXPECT_THAT(rest.err, HasSubstr(fmt::format("goes on after step {}", (*report)["steps"].get<int>())));
  expect_same_weights(run);
}

TEST_F(TrainElastic, WithoutTheStateInMemoryTheNewestCheckpointStays) {
  REMUDA_NEEDS_TWO_CORES();
  ElasticRun run({"elastic.ranks_lost=1", "checkpoint.folder", "checkpoint.every_steps=5"});
  run.worker(0, "checkpoint in");
  stop_after_a_loss(run);
  const Finished finished = run.finish();
  EXPECT_EQ(finished.exit.status, 128 + SIGTERM) << finished;
  const auto report = parse_json(run.folder().read("report.json"), "report.json");
  ASSERT_TRUE(report) << finished;
  EXPECT_EQ((*report)["steps"], (*report)["lost_ranks"][0]["resumed_from"]);
  EXPECT_TRUE(run.folder().has(fmt::format("kept/step-{:09}/manifest.json", (*report)["steps"].get<int>())));
}

TEST_F(TrainElastic, ARunThatIsStoppedWhenNothingHoldsItsStateIsStoppedAllTheSame) {
  REMUDA_NEEDS_TWO_CORES();
  ElasticRun run({"elastic.ranks_lost=1"});
  stop_after_a_loss(run);
  const Finished finished = run.finish();
  EXPECT_EQ(finished.exit.status, 128 + SIGTERM) << finished;
  EXPECT_THAT(finished.err, HasSubstr("stops: nothing holds the state of the run after step"));
  const auto report = parse_json(run.folder().read("report.json"), "report.json");
  ASSERT_TRUE(report) << finished;
  EXPECT_EQ((*report)["stopped"], true);
  EXPECT_EQ((*report)["steps"], 0);
  EXPECT_EQ((*report)["lost_ranks"][0]["state"], "none");
  EXPECT_FALSE(run.folder().has("out.safetensors")) << "no weights that nothing has learned";
}

// Only some of its ranks may know the checkpoint that it goes on from.
TEST_F(TrainElastic, ALossWhileARunThatGoesOnStartsEndsIt) {
  REMUDA_NEEDS_TWO_CORES();
  ElasticRun first({"checkpoint.folder", "train.max_steps=5"});
  ASSERT_FALSE(first.report().is_null());
  JobText job = three_ranks();
  job.devices.replace(job.devices.find("slowdown = 20\n[[device]]\nuse = 'cpu:1'\nshared = true\nslowdown = 40"), 13,
                      "slowdown = 300");  // rank 1 is measured for seconds
  first.folder().write("job.toml", job.text());
  RunningProgram again(first.command({"elastic.ranks_lost=2", "checkpoint.folder", "checkpoint.resume=on"}));
  ASSERT_TRUE(eventually([&] { return again.err().find("x) alone: ") != std::string::npos; }, 60)) << again.err();
  ::kill(children_of(again.pid()).at(2), SIGKILL);
  const Finished finished = again.finish();
  EXPECT_EQ(finished.exit.status, 1) << finished;
  EXPECT_THAT(finished.err, HasSubstr("remuda: rank 2 (cpu:1): killed by signal 9"));
  EXPECT_TRUE(first.folder().has("kept/step-000000005/manifest.json"));
}

/// A process in an uninterruptible call outlives SIGKILL, and with it its descriptors: those of this rank live on here.
std::vector<Fd> descriptors_of(pid_t pid) {
  std::vector<Fd> all;
  const Fd process(int(::syscall(SYS_pidfd_open, pid, 0)));
  for (int fd = 3; fd < 64; ++fd) {
    Fd copy(int(::syscall(SYS_pidfd_getfd, process.get(), fd, 0)));
    struct stat info = {};
    if (copy && ::fstat(copy.get(), &info) == 0 && S_ISDIR(info.st_mode)) all.push_back(std::move(copy));
  }
  return all;
}

TEST_F(TrainElastic, TheFolderIsTheRunsAlsoWhereTheFirstRankDoesNotEnd) {
  REMUDA_NEEDS_TWO_CORES();
  ElasticRun run(kWithCheckpoint);
  const pid_t first = run.worker(0, "checkpoint in");
  const std::vector<Fd> kept = descriptors_of(first);
  if (kept.empty()) GTEST_SKIP() << "this system does not let a process have the descriptors of its child's child";
  run.kill(0, "checkpoint in");
  const Json report = run.report();
  ASSERT_EQ(report["lost_ranks"].size(), 1U) << run.printed();
  EXPECT_EQ(report["steps"], kElasticSteps);
  expect_same_weights(run);
}

// Which of its last acts the rank is at is chance; the run is whole whichever it is.
TEST_F(TrainElastic, ARankThatIsLostAfterTheLastStepEndsNoRun) {
  REMUDA_NEEDS_TWO_CORES();
  for (const size_t rank : {0, 1}) {
    SCOPED_TRACE(rank);
    ElasticRun run({"elastic.ranks_lost=1", "elastic.buddy=true"});
    run.worker(rank, "epoch 4/");
    run.kill(rank, "epoch 16/16");
    const Json report = run.report();
    ASSERT_FALSE(report.is_null()) << run.printed();
    EXPECT_EQ(report["steps"], kElasticSteps);
    EXPECT_TRUE(report.contains("test_loss"));
    expect_same_weights(run);
  }
}

TEST_F(TrainElastic, OneMoreThanMayBeLostEndsTheRun) {
  REMUDA_NEEDS_TWO_CORES();
  ElasticRun run({"elastic.ranks_lost=1", "checkpoint.folder", "checkpoint.every_steps=5"});
  run.kill(2, "checkpoint in");
  run.kill(0, "goes on after step");
  const Finished finished = run.finish();
  EXPECT_EQ(finished.exit.status, 1) << finished;
  EXPECT_THAT(finished.err, HasSubstr("remuda: rank 0 (cpu:0): killed by signal 9"));
}

}  // namespace
}  // namespace remuda::tests
