// What holds a run back, in six made situations: the real programs, and the sentence that they end with.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "data/testing/pictures.h"
#include "tests/train_job_files.h"
#include "tests/two_hosts.h"

namespace remuda::tests {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kAlone{"--devices", "cpu:0"};

/// The largest part of each step, and the sentence.
void expect_limit(const Json& report, const std::string& limit, const std::string& help) {
  ASSERT_TRUE(report.contains("bottleneck")) << to_line(report);
  const Json& bottleneck = report["bottleneck"];
  EXPECT_EQ(bottleneck["limit"], limit) << to_line(bottleneck);
  EXPECT_EQ(bottleneck["share"], bottleneck["parts"][limit]);
  EXPECT_THAT(std::string(bottleneck["sentence"]), HasSubstr(help));
}

/// Steps of much computing, most of it in blocks.
JobText heavy_job() {
  JobText job;
  job.model = fmt::format("name = 'gpt'\nwidth = 64\ndepth = 4\nvocabulary = {}\n", kVocabulary);
  job.data = "format = 'tokens'\ntrain = 'train.tokens'\ncontext = 32\n";
  job.train = "epochs = 8\nglobal_batch = 16\nlearning_rate = 0.01\n";
  return job;
}

TEST(TrainBottleneck, SlowData) {
  JobText job;
  job.data = "format = 'images'\ntrain = 'pictures'\nsize = 8\nworkers = 0\n";
  job.train = "epochs = 4\nglobal_batch = 8\n";
  const ScratchFolder folder = job_folder(job);
  for (int number = 0; number < 24; ++number)
    folder.write(fmt::format("pictures/{}/{}.jpg", number % 2, number),
                 data::jpeg_file(data::slopes({.height = 640, .width = 640}, number)));
  expect_limit(train_report(folder, kAlone), "data", "data.workers = ");
}

TEST(TrainBottleneck, SlowLink) {
  const TwoHosts hosts(50e6);
  if (!hosts.works()) GTEST_SKIP() << "needs root, network namespaces and tc";
  JobText job;
  job.model = "name = 'mlp'\nhidden = [512, 256]\n";
  job.train = "epochs = 1\nglobal_batch = 48\n";
  const ScratchFolder folder = job_folder(job), home;
  RunningProgram first = hosts.launch(0, folder, home), second = hosts.launch(1, folder, home);
  const Finished ended = first.finish(), other = second.finish();
  ASSERT_TRUE(ended.exit.ok()) << ended << other;
  const auto report = parse_json(folder.read("report-0.json"), "the report");
  ASSERT_TRUE(report) << report.error().message;
  expect_limit(*report, "communication", "over tcp, encrypted: train.gradients = \"bf16\" would send 25 % fewer bytes");
  EXPECT_THAT(ended.out, HasSubstr("Communication took "));
}

TEST(TrainBottleneck, ImbalanceOfAnEvenSplit) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job = heavy_job();
  job.balance = "policy = 'even'\n";
  job.devices += "slowdown = 4.0\n";
  expect_limit(train_report(job_folder(job)), "imbalance", "as the split is even; by the speeds of this run");
}

TEST(TrainBottleneck, ADeviceThatCostsMoreThanItGives) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job;
  job.model = "name = 'mlp'\nhidden = [512, 512]\n";
  job.train = "epochs = 8\nglobal_batch = 48\noptimizer = 'adamw'\n";
  job.balance = "policy = 'auto'\nstate_shares = [1, 1]\n";
  job.devices += "slowdown = 16.0\n";
  const Json report = train_report(job_folder(job));
  ASSERT_TRUE(report.contains("bottleneck")) << to_line(report);
  EXPECT_EQ(report["bottleneck"]["limit"], "devices") << to_line(report["bottleneck"]);
  EXPECT_THAT(std::string(report["bottleneck"]["sentence"]), HasSubstr("without it, by --devices cpu:0, there are"));
}

TEST(TrainBottleneck, MemoryThatBlocksAreRecomputedFor) {
  JobText job = heavy_job();
  job.train += "[memory]\nrecompute = 'blocks'\n";
  expect_limit(train_report(job_folder(job), kAlone), "memory", "memory.recompute = \"auto\" does so only where");
}

TEST(TrainBottleneck, NothingButComputing) {
  const ScratchFolder folder = job_folder(heavy_job());
  const Json report = train_report(folder, kAlone);
  expect_limit(report, "compute", "one more like cpu:0 would make it up to");
  const Finished shown = run({REMUDA_PROGRAM, "report", folder.path("report.json")});
  EXPECT_THAT(shown.out, HasSubstr("\nComputing took ")) << shown;
}

}  // namespace
}  // namespace remuda::tests
