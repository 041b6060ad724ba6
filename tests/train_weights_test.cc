// Weights out of a run and into the next one, and the text that a trained gpt generates.
#include <filesystem>
#include <gmock/gmock.h>

#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

const std::vector<std::string> kOneDevice{"--devices", "cpu:0"};

/// The report of a run on one device with these keys changed.
Json report_with(const ScratchFolder& folder, const std::vector<std::string>& settings) {
  std::vector<std::string> arguments = kOneDevice;
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  return train_report(folder, arguments);
}

TEST(TrainWeights, OfOneRunStartTheNext) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job;
  job.model = "name = 'resnet'\nwidth = 4\nnorm = 'batch'\n";
  job.train = "epochs = 2\nglobal_batch = 24\nlearning_rate = 0.05\n";
  const ScratchFolder folder = job_folder(job);
  const Json first = train_report(folder, {"--set", "output.weights=w.safetensors"});
  EXPECT_EQ(first["weights"]["format"], "safetensors");
  EXPECT_EQ(first["weights"]["bytes"], folder.read("w.safetensors").size());
  EXPECT_EQ(first["job"]["output.weights"], folder.path("w.safetensors"));

  // One step that changes almost nothing: the test sees the weights as they were read, running statistics too.
  const Json next = report_with(folder, {"model.weights=w.safetensors", "train.learning_rate=1e-30", "train.epochs=1",
                                         "train.max_steps=1", "train.seed=5"});
  EXPECT_LT(next["loss_per_epoch"][0], double(first["loss_per_epoch"][0]) / 2)
      << "it goes on from where the first ended";
}

TEST(TrainWeights, AreWrittenWhenTheRunIsStopped) {
  JobText job;
  job.train = "epochs = 1000000\nglobal_batch = 48\nlearning_rate = 0.001\n";
  const ScratchFolder folder = job_folder(job);
  RunningProgram program(train_command(folder, {"--devices", "cpu:0", "--set", "output.weights=w.safetensors"}));
  ASSERT_TRUE(eventually([&] { return program.err().find("epoch 1/") != std::string::npos; }, kPatience_s));
  program.signal(SIGINT);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit.status, 130) << finished;
  EXPECT_THAT(finished.out, HasSubstr("stopped         after step "));
  EXPECT_THAT(finished.out, HasSubstr("tensors, "));
  EXPECT_THAT(finished.out, HasSubstr(" as safetensors in " + folder.path("w.safetensors")));
  const Json next = report_with(folder, {"model.weights=w.safetensors", "train.epochs=1"});
  EXPECT_EQ(next["steps"], 6);
}

TEST(TrainWeights, OfATorchScriptModelGoAsTorchScriptWhereTheFileIsNamedSo) {
  JobText job;
  job.model = "path = 'model.pt'\nloss = 'nll'\n";
  const ScratchFolder folder = job_folder(job);
  ASSERT_TRUE(run({MAKE_SCRIPT_MODEL_PROGRAM, folder.path("model.pt")}).exit.ok());
  const Json first = report_with(folder, {"output.weights=trained.pt"});
  EXPECT_EQ(first["weights"]["format"], "TorchScript");
  const Json next = report_with(folder, {"model.path=trained.pt", "output.weights=w.safetensors"});
  EXPECT_LT(next["loss_per_epoch"][0], first["loss_per_epoch"][0]);
  EXPECT_EQ(next["weights"]["format"], "safetensors");
}

/// The sentence of a run that refuses its weights.
std::string weights_refusal(const ScratchFolder& folder, const std::vector<std::string>& settings) {
  std::vector<std::string> arguments{"--quiet", "--devices", "cpu:0"};
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  const auto before = folder.names();
  const Finished finished = run(train_command(folder, arguments));
  EXPECT_EQ(finished.exit.status, 2) << finished;
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(finished.err.find('\n'), finished.err.size() - 1) << "one line: " << finished.err;
  EXPECT_EQ(folder.names(), before) << "nothing is left behind";
  return finished.err;
}

TEST(TrainWeights, ThatAreDamagedOrForeignAreRefused) {
  const ScratchFolder folder = job_folder();
  ASSERT_TRUE(run({MAKE_SCRIPT_MODEL_PROGRAM, folder.path("model.pt")}).exit.ok());
  folder.write("page", "<!DOCTYPE html>\n<html><body>404</body></html>\n");
  EXPECT_THAT(weights_refusal(folder, {"model.weights=page"}),
              HasSubstr(folder.path("page") + " is an HTML page; weights are read from"));
  EXPECT_THAT(weights_refusal(folder, {"model.weights=model.pt"}),
              HasSubstr("model.pt is a ZIP archive (torch.save() and"));
  EXPECT_THAT(weights_refusal(folder, {"model.weights=absent"}), HasSubstr("absent: No such file or directory"));

  report_with(folder, {"output.weights=w.safetensors"});
  EXPECT_THAT(weights_refusal(folder, {"model.path=w.safetensors"}),
              HasSubstr("w.safetensors is a safetensors file, which holds values but no program"));
  EXPECT_THAT(weights_refusal(folder, {"model.weights=w.safetensors", "model.hidden=[17]"}),
              HasSubstr("rank 0 (cpu:0): " + folder.path("w.safetensors") +
                        " does not fit the model: layers.0.weight has shape [16, 144], but [17, 144] in the model"));
  folder.write("short", folder.read("w.safetensors").substr(0, 1000));
  EXPECT_THAT(weights_refusal(folder, {"model.weights=short"}),
              HasSubstr("short is a damaged safetensors file: tensor '"));
}

/// Runs a command line in a mount namespace of its own.
Finished with_own_mounts(const std::vector<std::string>& line) {
  std::vector<std::string> words{"unshare", "--mount", "--propagation", "private"};
  words.insert(words.end(), line.begin(), line.end());
  return run(words);
}

TEST(TrainWeights, ThatFindNoRoomLeaveTheOldOnesWhole) {
  if (!with_own_mounts({"mount", "-t", "tmpfs", "tmpfs", "/mnt"}).exit.ok())
    GTEST_SKIP() << "this process may not mount a small disk";
  const ScratchFolder folder = job_folder();
  report_with(folder, {"output.weights=w.safetensors"});
  std::filesystem::create_directory(folder.path("disk"));
  const char* on_a_full_disk =
      "cd \"$0\" && mount -t tmpfs -o size=64k tmpfs disk && cp w.safetensors disk && cat /dev/zero >disk/full "
      "2>/dev/null; \"$@\"; status=$?; cmp w.safetensors disk/w.safetensors && ls -A disk; exit $status";
  std::vector<std::string> line{"/bin/sh", "-c", on_a_full_disk, folder.path("")};
  for (const std::string& word :
       train_command(folder, {"--quiet", "--devices", "cpu:0", "--set", "output.weights=disk/w.safetensors"}))
    line.push_back(word);
  const Finished finished = with_own_mounts(line);
  EXPECT_EQ(finished.exit.status, 1) << finished;
  EXPECT_THAT(finished.out, EndsWith("full\nw.safetensors\n")) << "the old file, and nothing of the new one";
  EXPECT_THAT(finished.err, HasSubstr(folder.path("disk/w.safetensors") + ": No space left on device"));
  EXPECT_EQ(finished.err.find('\n'), finished.err.size() - 1) << "one line: " << finished.err;
}

TEST(TrainWeights, NeverReplaceWhatIsReadAndNeedAFolder) {
  const ScratchFolder folder = job_folder();
  EXPECT_THAT(weights_refusal(folder, {"output.weights=train.images"}),
              HasSubstr("output.weights " + folder.path("train.images") + " would replace what the run reads"));
  EXPECT_THAT(weights_refusal(folder, {"output.weights=nowhere/w.safetensors"}),
              HasSubstr("there is no folder " + folder.path("nowhere")));
}

/// examples/gpt.toml in a folder with tokens of a short text, made as its users make them.
ScratchFolder gpt_example() {
  ScratchFolder folder;
  std::string text;
  while (text.size() < 20'000) text += "the cat sat on the mat. ";
  folder.write("text.txt", text);
  const Finished made = run({REMUDA_PROGRAM, "train", "--init", folder.path("")});
  EXPECT_TRUE(made.exit.ok()) << made;
  std::filesystem::copy_file(REMUDA_EXAMPLES "/gpt.toml", folder.path("job.toml"),
                             std::filesystem::copy_options::overwrite_existing);
  return folder;
}

TEST(TrainSample, OfTheGptExampleIsAsLongAsAskedForAndTheSameInEveryRun) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder folder = gpt_example();
  // Small; and with a split that does not depend on the speed of the devices, on which rounding depends.
  std::vector<std::string> small;
  for (const char* setting :
       {"model.width=32", "model.depth=2", "model.vocabulary=128", "data.context=32", "train.epochs=8",
        "train.learning_rate=0.01", "output.sample=100", "output.prompt=the c", "balance.policy=even"})
    small.insert(small.end(), {"--set", setting});
  const Json report = train_report(folder, small);
  const std::string sample = report.value("sample", "");
  EXPECT_EQ(sample.size(), 100u);
  EXPECT_THAT(sample, HasSubstr("sat on the mat")) << "it has learned";
  EXPECT_EQ(report["weights"]["format"], "safetensors");

  const Finished again = run(train_command(folder, small));
  EXPECT_THAT(again.out, ::testing::EndsWith("\nsample\n  the c" + sample + "\n")) << again;
}

}  // namespace
}  // namespace remuda::tests
