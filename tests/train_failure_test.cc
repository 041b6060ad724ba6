// Whichever process is killed, stopped or hangs: the run ends soon, says why, and leaves no process behind.
#include <csignal>
#include <gmock/gmock.h>

#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A run that takes hours, with its workers at work.
class LongRun {
 public:
  LongRun()
      : folder_(job_folder(endless())), program_(train_command(folder_, {"--json", folder_.path("report.json")})) {
    const bool trains = eventually([this] { return program_.err().find("epoch 2/") != std::string::npos; }, 60);
    EXPECT_TRUE(trains) << program_.err();
    workers_ = children_of(program_.pid());
    EXPECT_EQ(workers_.size(), 2u);
  }
  ~LongRun() {
    for (const pid_t worker : workers_)
      if (is_running(worker)) ::kill(worker, SIGKILL);
  }

  const ScratchFolder& folder() const { return folder_; }
  RunningProgram& program() { return program_; }
  pid_t worker(size_t rank) const { return workers_.at(rank); }
  bool no_worker_within(double seconds) const {
    return eventually([this] { return all_gone(workers_); }, seconds);
  }

 private:
  static JobText endless() {
    JobText job;
    job.train = "epochs = 1000000\nglobal_batch = 48\n";
    job.balance = "policy = 'even'\n";
    job.devices += "slowdown = 100\n";  // most of the time asleep
    return job;
  }

  ScratchFolder folder_;
  RunningProgram program_;
  std::vector<pid_t> workers_;
};

constexpr double kSoon_s = 10;

TEST(TrainFailure, KilledWorkerIsNamedAndEndsTheRun) {
  REMUDA_NEEDS_TWO_CORES();
  LongRun run;
  ::kill(run.worker(1), SIGKILL);
  const Finished finished = run.program().finish(kSoon_s);
  EXPECT_EQ(finished.exit.status, 1) << finished;
  EXPECT_THAT(finished.err, HasSubstr("remuda: rank 1 (cpu:1): killed by signal 9"));
  EXPECT_TRUE(run.no_worker_within(0));
  EXPECT_FALSE(run.folder().has("report.json"));
}

TEST(TrainFailure, KilledParentTakesItsWorkersAlong) {
  REMUDA_NEEDS_TWO_CORES();
  LongRun run;
  run.program().signal(SIGKILL);
  EXPECT_EQ(run.program().finish(kSoon_s).exit.signal, SIGKILL);
  EXPECT_TRUE(run.no_worker_within(kPatience_s));
  EXPECT_THAT(run.folder().names(), Not(::testing::Contains(HasSubstr("report"))));
}

TEST(TrainFailure, CtrlCEndsTheRunWithItsReport) {
  REMUDA_NEEDS_TWO_CORES();
  LongRun run;
  run.program().signal(SIGINT);
  const Finished finished = run.program().finish(kSoon_s);
  EXPECT_EQ(finished.exit.status, 128 + SIGINT) << finished;
  EXPECT_THAT(finished.out, HasSubstr("stopped "));
  EXPECT_TRUE(run.no_worker_within(0));
  const auto report = parse_json(run.folder().read("report.json"), "report.json");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ((*report)["stopped"], true);
  EXPECT_GT((*report)["steps"], 0);
}

// The kernel sends SIGHUP to all processes of the terminal's foreground group, and the shell sends it again.
TEST(TrainFailure, TerminalThatIsClosedLeavesTheReport) {
  REMUDA_NEEDS_TWO_CORES();
  LongRun run;
  for (const size_t rank : {0, 1}) ::kill(run.worker(rank), SIGHUP);
  run.program().signal(SIGHUP);
  run.program().signal(SIGHUP);
  const Finished finished = run.program().finish(kSoon_s);
  EXPECT_EQ(finished.exit.status, 128 + SIGHUP) << finished;
  EXPECT_TRUE(run.no_worker_within(0));
  const auto report = parse_json(run.folder().read("report.json"), "report.json");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ((*report)["stopped"], true);
  EXPECT_GT((*report)["steps"], 0);
}

TEST(TrainFailure, WorkerThatHangsIsKilledOnceThePatienceIsOver) {
  REMUDA_NEEDS_TWO_CORES();
  LongRun run;
  ::kill(run.worker(0), SIGSTOP);
  run.program().signal(SIGINT);
  const Finished finished = run.program().finish(2 * kSoon_s);
  EXPECT_EQ(finished.exit.status, 128 + SIGINT) << finished;
  EXPECT_TRUE(run.no_worker_within(0));
}

TEST(TrainFailure, SecondCtrlCDoesNotWaitForWorkersThatHang) {
  REMUDA_NEEDS_TWO_CORES();
  LongRun run;
  ::kill(run.worker(0), SIGSTOP);
  run.program().signal(SIGINT);
  EXPECT_FALSE(run.program().finish(0.5).exit.ok());
  run.program().signal(SIGINT);
  const Finished finished = run.program().finish(kSoon_s / 2);
  EXPECT_EQ(finished.exit.status, 128 + SIGINT) << finished;
  EXPECT_TRUE(run.no_worker_within(0));
}

TEST(TrainFailure, TrainingThatIsNotFiniteNamesTheLearningRate) {
  const ScratchFolder folder = job_folder();
  const Finished finished = run(train_command(
      folder, {"--devices", "cpu:0", "--set", "train.learning_rate=1e30", "--json", folder.path("report.json")}));
  EXPECT_EQ(finished.exit.status, 1) << finished;
  EXPECT_THAT(finished.err, HasSubstr("train.learning_rate"));
  EXPECT_FALSE(folder.has("report.json"));
}

}  // namespace
}  // namespace remuda::tests
