// `remuda train --compare`: real runs in turns, and what stops them.
#include <csignal>
#include <gmock/gmock.h>

#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using ::testing::HasSubstr;

/// One device, so that the runs are short.
JobText small_job() {
  JobText job;
  job.train = "epochs = 2\nglobal_batch = 48\nlearning_rate = 0.02\n";
  job.devices = "[[device]]\nuse = 'cpu:0'\n";
  return job;
}

TEST(TrainCompare, MakesBothWaysInTurnsAndSaysWhatTheyDifferIn) {
  const ScratchFolder folder = job_folder(small_job());
  const Finished finished =
      run(train_command(folder, {"--compare", "train.learning_rate=1e-6", "--repeats", "2", "--set", "train.seed=5",
                                 "--set", "output.weights=w.safetensors", "--json", folder.path("ab.json")}));
  ASSERT_EQ(finished.exit.status, 0) << finished;
  EXPECT_THAT(finished.err, HasSubstr("run 1 of 4: A, seed 5\n"));
  EXPECT_THAT(finished.err, HasSubstr("run 3 of 4: B, seed 6\n"));
  EXPECT_THAT(finished.out, HasSubstr("train.learning_rate=1e-6; 2 pairs of runs"));
  EXPECT_FALSE(folder.has("w.safetensors")) << "every run would replace it";

  const auto json = parse_json(folder.read("ab.json"), "ab.json");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ((*json)["pairs"], 2);
  std::string ways;
  for (const Json& made : (*json)["runs"]) {
    const bool is_b = made["way"] == "B";
    ways += is_b ? 'B' : 'A';
    EXPECT_EQ(made["report"]["seed"], made["seed"]);
    EXPECT_EQ(made["report"]["job"]["train.learning_rate"], is_b ? "1e-06" : "0.02");
  }
  EXPECT_EQ(ways, "ABBA");
  EXPECT_GT((*json)["differences"]["loss_per_epoch"]["difference"], 0) << "B hardly learns";
  EXPECT_TRUE((*json)["differences"].contains("samples_per_s"));
}

TEST(TrainCompare, RefusesWhatCannotBeComparedBeforeTheFirstRun) {
  const ScratchFolder folder = job_folder(small_job());
  const auto refusal = [&](std::vector<std::string> words) {
    const Finished finished = run(train_command(folder, words));
    EXPECT_EQ(finished.exit.status, 2) << finished;
    EXPECT_EQ(finished.err.find("run 1 of"), std::string::npos);
    return finished.err;
  };
  EXPECT_THAT(refusal({"--compare", "train.lerning_rate=1"}), HasSubstr("--compare train.lerning_rate: "));
  EXPECT_THAT(refusal({"--compare", "train.learning_rate=fast"}),
              HasSubstr("--compare train.learning_rate: train.learning_rate is 'fast'; it must be a number above 0"));
  EXPECT_THAT(refusal({"--compare", "train.learning_rate=0.02"}), HasSubstr("changes nothing"));
  EXPECT_THAT(refusal({"--compare", "train.seed=3"}), HasSubstr("each pair of runs has a seed of its own"));
  EXPECT_THAT(refusal({"--compare", "output.weights=w.safetensors"}), HasSubstr("changes nothing"));
  EXPECT_THAT(refusal({"--compare", "train.epochs=3", "--step-times", folder.path("t")}),
              HasSubstr("--step-times is for one run"));
  EXPECT_THAT(refusal({"--compare", "train.epochs=3", "--repeats", "1"}), HasSubstr("--repeats"));
  EXPECT_THAT(refusal({"--repeats", "3"}), HasSubstr("--compare")) << "of what?";
}

TEST(TrainCompare, CtrlCEndsItWithWhatIsKnown) {
  JobText endless = small_job();
  endless.train = "epochs = 1000000\nglobal_batch = 48\n";
  const ScratchFolder folder = job_folder(endless);
  RunningProgram program(train_command(folder, {"--compare", "balance.policy=even", "--json", folder.path("ab.json")}));
  ASSERT_TRUE(eventually([&] { return program.err().find("epoch 2/") != std::string::npos; }, kPatience_s))
      << program.err();
  program.signal(SIGINT);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit.status, 128 + SIGINT) << finished;
  EXPECT_THAT(finished.out, HasSubstr("There is no pair of which both runs were made"));
  const auto json = parse_json(folder.read("ab.json"), "ab.json");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ((*json)["stopped"], true);
  EXPECT_EQ((*json)["runs"].size(), 0u);
}

}  // namespace
}  // namespace remuda::tests
