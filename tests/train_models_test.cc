// Each kind of model trains on two devices.
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <map>

#include "data/testing/pictures.h"
#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

void expect_learned(const Json& report) {
  const auto losses = report.value("loss_per_epoch", std::vector<double>{});
  ASSERT_FALSE(losses.empty());
  EXPECT_LT(losses.back(), losses.front());
}

TEST(TrainModels, ResnetWithBatchNorm) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job;
  job.model = "name = 'resnet'\nwidth = 4\nnorm = 'batch'\n";
  job.train = "epochs = 5\nglobal_batch = 24\nlearning_rate = 0.05\n";
  const Json report = train_report(job_folder(job));
  expect_learned(report);
  EXPECT_GT(report["test_accuracy"], 0.5) << "with the ranks' running means and variances combined";
}

/// One of them slowed, so that their parts are uneven; what both normalise together does not depend on that.
TEST(TrainModels, ResnetWithBatchNormOfBothDevices) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job;
  job.model = "name = 'resnet'\nwidth = 4\nnorm = 'batch'\n";
  job.train = "epochs = 5\nglobal_batch = 24\nlearning_rate = 0.05\nbatch_norm = 'synchronized'\n";
  const auto folder = job_folder(job);
  const Json report = train_report(folder);
  expect_learned(report);
  EXPECT_EQ(report["batch_norm"], "synchronized");
  EXPECT_GT(report["test_accuracy"], 0.5);
  const Json fixed = train_report(folder, {"--set", "balance.policy=fixed", "--set", "balance.shares=[7, 1]"});
  EXPECT_NEAR(fixed["loss_per_epoch"][0].get<double>(), report["loss_per_epoch"][0].get<double>(), 1e-3);
}

TEST(TrainModels, GptTestsItsTokensToo) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job;
  job.model = fmt::format("name = 'gpt'\nwidth = 16\nheads = 2\ndepth = 2\nvocabulary = {}\n", kVocabulary);
  job.data = "format = 'tokens'\ntrain = 'train.tokens'\ntest = 'train.tokens'\ncontext = 8\npadding = 0\n";
  job.train = "epochs = 4\nglobal_batch = 24\noptimizer = 'adamw'\nlearning_rate = 0.01\n";
  const Json report = train_report(job_folder(job));
  expect_learned(report);
  EXPECT_LT(report["test_loss"], report["loss_per_epoch"][0]);
}

/// A set of classes that differ in their colour, in a folder; and the same as a tar file.
class TrainOnImageFiles : public testing::Test {
 protected:
  TrainOnImageFiles() {
    std::map<std::string, std::string> members;
    for (int i = 0; i < 90; ++i) {
      const char* const of = std::array{"blue", "green", "red"}[size_t(i % 3)];
      data::Picture picture = data::slopes({16 + i % 4, 20 - i % 5}, i);
      for (size_t at = size_t(2 - i % 3); at < picture.values.size(); at += 3) picture.values[at] = 255;
      const std::string name = fmt::format("{}/{}.{}", of, i, i % 2 == 0 ? "jpg" : "png");
      const std::string file = i % 2 == 0 ? data::jpeg_file(picture) : data::png_file(picture);
      std::filesystem::create_directories(folder_.path(fmt::format("set/{}", of)));
      folder_.write("set/" + name, file);
      members[name] = file;
    }
    folder_.write("set.tar", data::tar_file(members));
  }
  static JobText job() {
    JobText job;
    job.model = "name = 'resnet'\nwidth = 4\n";
    job.data = "format = 'images'\ntrain = 'set'\ntest = 'set.tar'\nsize = 12\nflip = 'on'\ncrop = 1\n";
    job.train = "epochs = 3\nglobal_batch = 24\nlearning_rate = 0.05\n";
    return job;
  }

  const ScratchFolder folder_ = job_folder(job());
};

TEST_F(TrainOnImageFiles, LearnsAndSaysHowLongItWaitedForSamples) {
  REMUDA_NEEDS_TWO_CORES();
  const Json report = train_report(folder_);
  expect_learned(report);
  EXPECT_GT(report["test_accuracy"], 0.6);
  for (const Json& device : report["devices"]) {
    EXPECT_GT(device["data_wait_s"], 0);
    EXPECT_LT(device["data_wait_s"], device["compute_s"]);
  }
}

TEST_F(TrainOnImageFiles, TheSameSamplesForAnyNumberOfThreadsAndDevices) {
  REMUDA_NEEDS_TWO_CORES();
  const auto losses = [&](const std::vector<std::string>& flags) {
    return train_report(folder_, flags).value("loss_per_epoch", std::vector<double>{});
  };
  const auto two = losses({"--set", "balance.policy=even", "--set", "data.workers=3"});
  EXPECT_EQ(losses({"--set", "balance.policy=even", "--set", "data.workers=0"}), two) << "bit for bit";
  EXPECT_EQ(losses({"--set", "balance.policy=even", "--set", "data.train=set.tar"}), two);
  EXPECT_EQ(losses({"--set", "balance.policy=even", "--set", "data.cache_mib=1"}), two);
  const auto one = losses({"--devices", "cpu:0"});
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], two[i], 1e-4 * two[i]);
}

TEST_F(TrainOnImageFiles, ADamagedImageEndsTheRunWithItsName) {
  REMUDA_NEEDS_TWO_CORES();
  folder_.write("set/red/89.png", folder_.read("set/red/89.png").substr(0, 60));
  const Finished ended = run(train_command(folder_));
  EXPECT_EQ(ended.exit.status, 2) << ended;
  EXPECT_THAT(ended.err, testing::HasSubstr(folder_.path("set/red/89.png") + " is a damaged PNG file: "));
}

TEST(TrainModels, Cifar) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job;
  job.model = "name = 'mlp'\nhidden = [8]\n";
  job.data = "format = 'cifar'\ntrain = 'set'\ntest = 'set'\nflip = 'on'\n";
  job.train = "epochs = 4\nglobal_batch = 24\nlearning_rate = 0.01\n";
  const ScratchFolder folder = job_folder(job);
  std::filesystem::create_directories(folder.path("set"));
  const auto records = [](int count) {  // each class has a brightness of its own
    std::string bytes;
    for (int i = 0; i < count; ++i) bytes += char(i % 10) + std::string(3072, char(25 * (i % 10)));
    return bytes;
  };
  folder.write("set/data_batch_1.bin", records(70));
  folder.write("set/data_batch_2.bin", records(50));
  folder.write("set/test_batch.bin", records(30));
  expect_learned(train_report(folder));
}

// The model's output is log-probabilities, which the log-softmax in cross_entropy does not change: both losses are
// equal.
TEST(TrainModels, TorchScriptFileWithEitherLoss) {
  REMUDA_NEEDS_TWO_CORES();
  std::vector<double> losses;
  for (const char* loss : {"nll", "cross_entropy"}) {
    JobText job;
    job.model = fmt::format("path = 'model.pt'\nloss = '{}'\n", loss);
    const ScratchFolder folder = job_folder(job);
    const Finished made = run({MAKE_SCRIPT_MODEL_PROGRAM, folder.path("model.pt")});
    ASSERT_TRUE(made.exit.ok()) << made;
    const Json report = train_report(folder, {"--set", "balance.policy=even"});
    expect_learned(report);
    losses.push_back(report["loss_per_epoch"].back());
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-5);
}

}  // namespace
}  // namespace remuda::tests
