// Jobs that once went wrong, in testdata/cases: each README there says what is right.
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/train_job_files.h"
#include "weights/reader.h"

namespace remuda::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A copy of the case, run on so many CPU devices.
struct TrainCase {
  TrainCase(const std::string& name, std::string its_job) : job(std::move(its_job)) {
    std::filesystem::copy(std::string(TRAIN_CASES) + "/" + name, folder.path());
  }

  Finished train(int devices, const std::vector<std::string>& settings = {}) const {
    std::vector<std::string> words{
        REMUDA_PROGRAM,         "train", folder.path(job), "--json", folder.path("report.json"), "--cpu-devices",
        std::to_string(devices)};
    if (devices == 1) words.insert(words.end(), {"--devices", "cpu:0"});
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    return run(words);
  }
  Json report() const { return parse_json(folder.read("report.json"), "the report").value(); }

  const ScratchFolder folder;
  const std::string job;
};

/// Which PyTorch refuses, too, and which would teach a model nothing but its biases.
TEST(TrainCases, AStepOfOneValueForEachChannelOfBatchNormIsSaidBeforeTheRun) {
  const TrainCase one("train-last-sample-nan", "rbn.toml");
  const Finished finished = one.train(1);
  EXPECT_EQ(finished.exit.status, 2) << finished;
  EXPECT_THAT(finished.err,
              HasSubstr("the model resnet cannot train on 1 sample at a time (expected more than 1 value"));
  EXPECT_THAT(finished.err, HasSubstr("as is left of 65 samples for the last step of each epoch"));
  EXPECT_FALSE(one.folder.has("report.json"));
  ASSERT_TRUE(one.train(1, {"train.global_batch=13"}).exit.ok());
  EXPECT_GT(one.report()["test_accuracy"], 0.8) << "no running variance is NaN";
}

TEST(TrainCases, AModelThatRefusesOneSampleTrains) {
  const TrainCase one("train-batchnorm1d", "idx.toml");
  const Finished finished = one.train(1);
  ASSERT_TRUE(finished.exit.ok()) << finished;
  EXPECT_EQ(one.report()["steps"], 8);
  EXPECT_EQ(one.report()["balance"]["least_samples"], 2);
}

TEST(TrainCases, AModelThatRefusesOneSampleGetsNoPartOfOne) {
  REMUDA_NEEDS_TWO_CORES();
  const TrainCase two("train-batchnorm1d", "idx.toml");
  const Finished finished = two.train(2, {"balance.policy=fixed", "balance.shares=[5, 1]"});
  ASSERT_TRUE(finished.exit.ok()) << finished;
  EXPECT_THAT(finished.err, HasSubstr("trains on 2 samples at least"));
  EXPECT_THAT(finished.err, HasSubstr("shares are multiples of 2\n"));
  EXPECT_EQ(two.report()["devices"][1]["share"], 0.125);
}

TEST(TrainCases, AStepOfOneSampleThatTheModelRefusesIsSaidBeforeTheRun) {
  const TrainCase one("train-batchnorm1d", "idx.toml");
  for (const auto& [setting, said] : {std::pair{"train.global_batch=21", "1 sample at a time ("},
                                      {"train.global_batch=1", "as train.global_batch = 1"}}) {
    const Finished finished = one.train(1, {setting});
    EXPECT_EQ(finished.exit.status, 2) << finished;
    EXPECT_THAT(finished.err, HasSubstr("bn.pt cannot train on "));
    EXPECT_THAT(finished.err, HasSubstr(said));
    EXPECT_FALSE(one.folder.has("report.json"));
  }
  const Finished finished = one.train(1, {"train.global_batch=21", "train.max_steps=3"});
  EXPECT_TRUE(finished.exit.ok()) << "it never comes to that step: " << finished;
}

TEST(TrainCases, ALossThatIsNoNumberIsSaidAndReplacesNothing) {
  REMUDA_NEEDS_TWO_CORES();
  const TrainCase nan("train-nan-test-loss", "mlp.toml");
  nan.folder.write("w.safetensors", "good ones");
  const Finished finished =
      nan.train(2, {"train.learning_rate=1e20", "output.weights=" + nan.folder.path("w.safetensors"),
                    "checkpoint.folder=" + nan.folder.path("kept")});
  EXPECT_EQ(finished.exit.status, 1) << finished;
  for (const char* epoch : {"epoch 1/2: ", "epoch 2/2: "}) {
    const std::string line = finished.err.substr(finished.err.find(epoch));
    EXPECT_THAT(line.substr(0, line.find('\n')), HasSubstr("test loss nan"));
  }
  EXPECT_THAT(finished.err,
              HasSubstr("remuda: the test loss is nan at the end; a smaller train.learning_rate may help\n"));
  EXPECT_THAT(finished.out, HasSubstr("test loss       nan\n"));
  EXPECT_THAT(finished.out, HasSubstr("weights         not written, as the loss is not finite\n"));
  EXPECT_EQ(nan.report()["test_loss"], nullptr);
  EXPECT_EQ(nan.report()["not_finite"], "the test loss is nan at the end");
  EXPECT_EQ(nan.folder.read("w.safetensors"), "good ones");
  EXPECT_TRUE(!nan.folder.has("kept") || std::filesystem::is_empty(nan.folder.path("kept"))) << "nor a checkpoint";
}

TEST(TrainCases, TiedWeightsComeOutUnderEachName) {
  REMUDA_NEEDS_TWO_CORES();
  const TrainCase tied("train-tied-weights-out", "tok.toml");
  const Finished finished = tied.train(2, {"output.weights=" + tied.folder.path("o.safetensors")});
  ASSERT_TRUE(finished.exit.ok()) << finished;
  const auto reader = weights::Reader::open(tied.folder.path("o.safetensors")).value();
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> values;
  for (const weights::TensorInfo& tensor : reader.header().tensors) {
    names.push_back(tensor.name);
    values.emplace_back(tensor.bytes());
    ASSERT_TRUE(reader.read(tensor, 0, values.back()));
  }
  EXPECT_THAT(names, ElementsAre("emb.weight", "head.weight"));
  EXPECT_EQ(values.front(), values.back());
}

}  // namespace
}  // namespace remuda::tests
