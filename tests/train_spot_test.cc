// A run on a spot machine: its processes are killed, its devices are taken away, and it learns what it would have
// learned.
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/job_fixture.h"
#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

/// On two of the three CPU devices of a recorded machine, slowed so that it lasts some seconds.
class TrainSpot : public JobTest {
 protected:
  TrainSpot() : files_(job_folder(job())) {
    Json machine{{"version", 1}, {"host", "lab"}, {"devices", Json::array()}};
    for (int i = 0; i < 3; ++i)
      machine["devices"].push_back(
          {{"id", fmt::format("cpu:{}", i)}, {"kind", "cpu"}, {"index", i}, {"model", "Model"}});
    folder_.write("lab.json", machine.dump());
  }
  std::vector<std::string> machine() const override { return {"--machine", folder_.path("lab.json")}; }

  static JobText job() {
    JobText job;
    job.train = "epochs = 40\nglobal_batch = 48\noptimizer = 'adamw'\nlearning_rate = 0.01\n";
    job.balance = "policy = 'fixed'\nshares = [2, 1]\n";
    job.devices = "[[device]]\nuse = 'cpu:0'\nslowdown = 10\n[[device]]\nuse = 'cpu:1'\nslowdown = 10\n";
    return job;
  }
  /// `remuda run FLAGS -- remuda train job.toml MORE`, on cpu:0 and cpu:1.
  std::vector<std::string> run_line(std::vector<std::string> flags, const std::vector<std::string>& more) const {
    flags.insert(flags.begin(), "run");
    flags.insert(flags.end(), {"-n", "2", "--cpu", "--", REMUDA_PROGRAM, "train", files_.path("job.toml"), "--machine",
                               folder_.path("lab.json")});
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  static bool says(const RunningProgram& program, const std::string& text, size_t times = 1) {
    return eventually(
        [&] {
          size_t found = 0;
          const std::string all = program.err();
          for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
          return found >= times;
        },
        kPatience_s);
  }
  /// The ranks of the job of a front: the keeper's command has one for each device.
  static std::vector<pid_t> ranks_of(const RunningProgram& front) {
    std::vector<pid_t> below{front.pid()};
    for (int level = 0; level < 2; ++level) {
      below = children_of(below.at(0));
      if (below.empty()) return {};
    }
    return children_of(below[0]);
  }

  const ScratchFolder files_;
};

TEST_F(TrainSpot, IsKilledPreemptedAndToldToStopAndLearnsTheSame) {
  REMUDA_NEEDS_TWO_CORES();
  const std::string weights = files_.path("weights.safetensors");
  ASSERT_EQ(ask(run_line({}, {"--set", "output.weights=" + weights})).exit.status, 0);
  const std::string whole = files_.read("weights.safetensors");

  const auto front = begin(
      run_line({"--preemptible", "--restart", "3"},
               {"--resume", "--set", "checkpoint.folder=" + files_.path("kept"), "--set", "checkpoint.every_steps=5",
                "--set", "output.weights=" + files_.path("spot.safetensors"), "--json", files_.path("report.json")}));
  ASSERT_TRUE(says(*front, "checkpoint in")) << front->err();
  const std::vector<pid_t> ranks = ranks_of(*front);
  ASSERT_THAT(ranks, SizeIs(2));
  ::kill(ranks[1], SIGKILL);
  ASSERT_TRUE(says(*front, "starts again (1 of 3)")) << front->err();
  ASSERT_TRUE(says(*front, "goes on after step")) << front->err();

  EXPECT_EQ(ask({"run", "-n", "3", "--cpu", "--priority", "1", "--", "true"}).exit.status, 0);
  ASSERT_TRUE(says(*front, "makes room for job 3; queued again")) << front->err();
  ASSERT_TRUE(says(*front, "goes on after step", 2)) << front->err();

  front->signal(SIGTERM);
  ASSERT_TRUE(says(*front, "was told to stop; queued again")) << front->err();
  const Finished finished = front->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(files_.read("spot.safetensors"), whole);
  const Json report = parse_json(files_.read("report.json"), "report").value();
  EXPECT_EQ(report["steps"], 240);
  EXPECT_EQ(report["checkpoints"]["balance"], "kept") << report["checkpoints"];
}

TEST_F(TrainSpot, WithoutResumeItDoesNotBeginAnewBesideItsCheckpoints) {
  const std::vector<std::string> checkpoints{"--set", "checkpoint.folder=" + files_.path("kept"), "--set",
                                             "train.max_steps=2"};
  ASSERT_EQ(ask(run_line({}, checkpoints)).exit.status, 0);
  const Finished again = ask(run_line({}, checkpoints));
  EXPECT_EQ(again.exit.status, 2) << again;
  EXPECT_THAT(again.err, HasSubstr("kept has the checkpoints of an earlier run, the newest after step 2: --resume goes "
                                   "on from it; a run that begins needs another checkpoint.folder"));
}

}  // namespace
}  // namespace remuda::tests
