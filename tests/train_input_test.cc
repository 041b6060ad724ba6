// Wrong input: status 2, one sentence that says where, and nothing left behind.
#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/env.h"
#include "base/listener.h"
#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The sentence, for a run that has to refuse its input before it starts anything.
std::string refusal(const ScratchFolder& folder, std::vector<std::string> arguments = {}) {
  const auto before = folder.names();
  if (std::ranges::find(arguments, "--dry-run") == arguments.end())  // it makes no report
    arguments.insert(arguments.begin(), {"--json", folder.path("report.json")});
  const Finished finished = run(train_command(folder, arguments));
  EXPECT_EQ(finished.exit.status, 2) << finished;
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, StartsWith("remuda"));
  EXPECT_EQ(finished.err.find('\n'), finished.err.size() - 1) << "one line: " << finished.err;
  EXPECT_EQ(folder.names(), before) << "nothing is left behind";
  return finished.err;
}

TEST(TrainInput, DataFileThatIsMissing) {
  JobText job;
  job.data = "train = {images = 'nowhere', labels = 'train.labels'}\n";
  const ScratchFolder folder = job_folder(job);
  EXPECT_THAT(refusal(folder), HasSubstr(folder.path("nowhere") + ": No such file or directory"));
  EXPECT_THAT(refusal(folder, {"--dry-run", "--json", folder.path("report.json")}),
              HasSubstr("--json is for the report of a run, and --dry-run makes none"));
}

TEST(TrainInput, DataFileThatIsCutOff) {
  const ScratchFolder folder = job_folder();
  folder.write("train.images", folder.read("train.images").substr(0, 5000));
  EXPECT_THAT(refusal(folder), HasSubstr(folder.path("train.images") + " is truncated: its header announces "));
}

TEST(TrainInput, DataFileOfAnotherKind) {
  const ScratchFolder folder = job_folder();
  folder.write("train.images", "\x89PNG\r\n\x1a\n and so on");
  EXPECT_THAT(refusal(folder),
              HasSubstr(folder.path("train.images") + " is a PNG image; training reads folders and tar files"));
}

TEST(TrainInput, AsManyLabelsAsImages) {
  const ScratchFolder folder = job_folder();
  folder.write("train.labels", idx_bytes({100}, std::string(100, '\1')));
  const std::string sentence = refusal(folder);
  EXPECT_THAT(sentence, HasSubstr(folder.path("train.labels")));
  EXPECT_THAT(sentence, HasSubstr("250"));
  EXPECT_THAT(sentence, HasSubstr("100"));
}

/// The dry run knows what the worker's libtorch can do, and ends as the run itself would.
TEST(TrainInput, PrecisionThatNoDeviceHas) {
  const ScratchFolder folder = job_folder();
  const std::vector<std::string> fp16{"--devices", "cpu:0", "--set", "train.precision=fp16"};
  std::vector<std::string> dry = fp16;
  dry.emplace_back("--dry-run");
  const Finished abilities = run({REMUDA_TRAIN_PROGRAM, "--abilities"});
  ASSERT_TRUE(abilities.exit.ok()) << abilities;
  if (abilities.out.find("fp16") != std::string::npos) {
    EXPECT_THAT(run(train_command(folder, dry)).out, HasSubstr("fp16\n"));
    return;
  }
  const std::string sentence = "no device of this job computes in fp16 with libtorch ";
  EXPECT_THAT(refusal(folder, dry), StartsWith("remuda: " + sentence));
  const Finished finished = run(train_command(folder, fp16));
  EXPECT_EQ(finished.exit.status, 2) << finished;
  EXPECT_THAT(finished.err, HasSubstr(sentence));
}

TEST(TrainInput, TokenOutsideTheVocabulary) {
  JobText job;
  job.model = fmt::format("name = 'gpt'\nvocabulary = {}\n", kVocabulary);
  job.data = "format = 'tokens'\ntrain = 'train.tokens'\ncontext = 8\n";
  const ScratchFolder folder = job_folder(job);
  folder.write("train.tokens", folder.read("train.tokens") + std::string("\x11\0", 2));
  EXPECT_THAT(refusal(folder), EndsWith("train.tokens holds token 17 at position 1000; model.vocabulary is 16\n"));
}

TEST(TrainInput, JobFileThatIsNoToml) {
  const ScratchFolder folder = job_folder();
  folder.write("job.toml", "[model]\nname = 'mlp\n");
  EXPECT_THAT(refusal(folder), HasSubstr(folder.path("job.toml") + ":2"));
}

TEST(TrainInput, JobFileThatIsMissing) {
  const ScratchFolder folder;
  EXPECT_THAT(refusal(folder), HasSubstr(folder.path("job.toml") + ": No such file or directory"));
}

TEST(TrainInput, UnknownKeyWithTheNearestKnownOne) {
  JobText job;
  job.train += "learning_rat = 0.1\n";
  const std::string sentence = refusal(job_folder(job));
  EXPECT_THAT(sentence, HasSubstr("job.toml:"));
  EXPECT_THAT(sentence, HasSubstr("train.learning_rat"));
  EXPECT_THAT(sentence, HasSubstr("train.learning_rate?"));
}

TEST(TrainInput, DeviceThatIsNotHere) {
  const ScratchFolder folder = job_folder();
  const std::string sentence = refusal(folder, {"--devices", "cpu:0,elsewhere:0"});
  EXPECT_THAT(sentence, HasSubstr("device elsewhere:0 is not on this machine, which has cpu:0"));
}

TEST(TrainInput, FewerSamplesInABatchThanDevices) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job;
  job.train = "global_batch = 1\n";
  EXPECT_THAT(refusal(job_folder(job)), HasSubstr("train.global_batch is 1, but each of the 2 devices needs"));
}

TEST(TrainInput, SharesAreForTheDevicesOfTheCommandLine) {
  const ScratchFolder folder = job_folder();
  const std::vector<std::string> one{"--devices", "cpu:0", "--set", "balance.policy=fixed", "--set"};
  const auto with = [&](const std::string& shares) {
    std::vector<std::string> arguments = one;
    arguments.push_back("balance.shares=" + shares);
    return arguments;
  };
  EXPECT_EQ(train_report(folder, with("[1]"))["devices"].size(), 1);
  EXPECT_THAT(refusal(folder, with("[1, 1]")), HasSubstr("has 2 for 1 device"));
}

TEST(TrainInput, UnknownTransportOfTheEnvironment) {
  for (const int size : {1, 2}) {
    JobText job;
    if (size == 1) job.devices = "[[device]]\nuse = 'cpu:0'\n";
    const ScratchFolder folder = job_folder(job);
    process::Environment environment = HandStarted{.size = size, .port = free_port().value()}.environment();
    environment.emplace_back(env::transport.name, "TCP");
    const Finished finished = run(worker_command(folder), environment);
    EXPECT_EQ(finished.exit.status, 2) << finished;
    EXPECT_THAT(finished.err, HasSubstr("REMUDA_TRANSPORT is 'TCP'; it must be auto, shm or tcp"));
  }
}

TEST(TrainInput, InitWritesAJobThatTrains) {
  const ScratchFolder folder;
  write_images(folder, "train", kTrainImages);
  write_images(folder, "test", kTestImages);
  const std::vector<std::string> init{REMUDA_PROGRAM, "train", "--init", folder.path("")};
  const Finished written = run(init);
  EXPECT_EQ(written.exit.status, 0) << written;
  EXPECT_THAT(written.out, HasSubstr("resnet on 250 images of 1x12x12 in 5 classes, tested on 60"));
  const Json report = train_report(folder, {"--devices", "cpu:0", "--set", "train.epochs=1"});
  EXPECT_TRUE(report.contains("test_accuracy"));
  EXPECT_EQ(run(init).exit.status, 2) << "it is there already";
}

TEST(TrainInput, PortInUse) {
  const ScratchFolder folder = job_folder();
  const Listener taken = listen_on_loopback(0).value();
  const std::string sentence = refusal(folder, {"--devices", "cpu:0", "--port", std::to_string(taken.port)});
  EXPECT_THAT(sentence, HasSubstr(fmt::format("port {}: Address already in use", taken.port)));
}

TEST(TrainInput, ReportThatCannotBeWritten) {
  const ScratchFolder folder = job_folder();
  const std::string missing = folder.path("nowhere/report.json"), itself = folder.path("");
  for (const std::string& place : {missing, itself}) {
    const Finished finished = run(train_command(folder, {"--devices", "cpu:0", "--json", place}));
    EXPECT_EQ(finished.exit.status, 2) << finished;
    EXPECT_THAT(finished.err, StartsWith("remuda: "));
    EXPECT_THAT(finished.err, HasSubstr(place));
    EXPECT_EQ(finished.out, "");
  }
  EXPECT_FALSE(folder.has("nowhere"));
}

TEST(TrainInput, ModelFileThatIsMissing) {
  JobText job;
  job.model = "path = 'model.pt'\n";
  const ScratchFolder folder = job_folder(job);
  EXPECT_THAT(refusal(folder, {"--devices", "cpu:0"}), HasSubstr(folder.path("model.pt") + ": No such file"));
}

TEST(TrainInput, ModelFileThatIsNoTorchScript) {
  JobText job;
  job.model = "path = 'model.pt'\n";
  const ScratchFolder folder = job_folder(job);
  folder.write("model.pt", "hello");
  EXPECT_THAT(refusal(folder, {"--devices", "cpu:0"}), HasSubstr("model.pt is no TorchScript file; in Python, "));
}

// Only a worker can read it, so this one is refused after the start.
TEST(TrainInput, ModelFileThatIsDamaged) {
  JobText job;
  job.model = "path = 'model.pt'\n";
  const ScratchFolder folder = job_folder(job);
  folder.write("model.pt", "PK\x03\x04 constants.pkl PK\x05\x06");
  const Finished finished =
      run(train_command(folder, {"--quiet", "--devices", "cpu:0", "--json", folder.path("report.json")}));
  EXPECT_EQ(finished.exit.status, 2) << finished;
  EXPECT_THAT(finished.err, HasSubstr("rank 0 (cpu:0): cannot load " + folder.path("model.pt")));
  EXPECT_EQ(finished.err.find('\n'), finished.err.size() - 1) << "one line: " << finished.err;
  EXPECT_FALSE(folder.has("report.json"));
}

}  // namespace
}  // namespace remuda::tests
