// Each kind of model trains on two devices.
#include <fmt/format.h>
#include <gmock/gmock.h>

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
