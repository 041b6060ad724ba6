// A run that is killed goes on from what it has kept, and learns what it would have learned.
#include <csignal>
#include <gmock/gmock.h>
#include <map>

#include "tests/train_job_files.h"
#include "weights/reader.h"

namespace remuda::tests {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> checkpoint_command(const std::string& action, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{REMUDA_PROGRAM, "checkpoint", action};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

/// The bytes of each tensor in a safetensors file.
std::map<std::string, std::vector<std::byte>> values_in(const std::string& file) {
  const auto reader = weights::Reader::open(file);
  if (!reader) return {{reader.error().message, {}}};
  std::map<std::string, std::vector<std::byte>> values;
  for (const weights::TensorInfo& tensor : reader->header().tensors) {
    std::vector<std::byte>& bytes = values[tensor.name];
    bytes.resize(tensor.bytes());
    EXPECT_TRUE(reader->read(tensor, 0, bytes));
  }
  return values;
}

JobText job_of(const std::string& epochs) {
  JobText job;
  job.train = "epochs = " + epochs + "\nglobal_batch = 48\noptimizer = 'adamw'\nlearning_rate = 0.01\n";
  job.balance = "policy = 'fixed'\nshares = [2, 1]\n";
  job.devices += "\n[output]\nweights = 'out.safetensors'\n";
  return job;
}

TEST(TrainCheckpoint, AKilledRunGoesOnToTheSameWeights) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder whole = job_folder(job_of("40")), folder = job_folder(job_of("40"));
  ASSERT_FALSE(train_report(whole).is_null());
  const std::string kept = folder.path("kept");
  {
    RunningProgram program(
        train_command(folder, {"--set", "checkpoint.folder=" + kept, "--set", "checkpoint.every_steps=2"}));
    EXPECT_TRUE(eventually(
        [&] { return folder.has("kept/step-000000002") || program.err().find("checkpoint in") != std::string::npos; },
        60));
    program.signal(SIGKILL);
    program.finish(10);
  }
  EXPECT_FALSE(folder.has("out.safetensors"));
  const Finished rest =
      run(train_command(folder, {"--set", "checkpoint.folder=" + kept, "--resume", "--json", folder.path("r.json")}));
  ASSERT_EQ(rest.exit.status, 0) << rest;
  const Json report = parse_json(folder.read("r.json"), "r.json").value();
  EXPECT_EQ(report["steps"], 240);
  EXPECT_EQ(folder.read("out.safetensors"), whole.read("out.safetensors"));
  EXPECT_EQ(report["checkpoints"]["failed"], 0);
}

TEST(TrainCheckpoint, ArePrintedVerifiedAndExported) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder folder = job_folder(job_of("2"));
  const std::string kept = folder.path("kept"), model = folder.path("model.safetensors");
  ASSERT_FALSE(train_report(folder, {"--set", "checkpoint.folder=" + kept}).is_null());
  const Finished list = run(checkpoint_command("list", {kept}));
  EXPECT_EQ(list.exit.status, 0) << list;
  EXPECT_THAT(list.out, HasSubstr("12  "));
  EXPECT_EQ(run(checkpoint_command("verify", {kept})).exit.status, 0);
  EXPECT_EQ(run(checkpoint_command("export", {kept, model})).exit.status, 0);
  EXPECT_EQ(values_in(model), values_in(folder.path("out.safetensors")));
  EXPECT_EQ(run(checkpoint_command("export", {kept})).exit.status, 2);
  EXPECT_EQ(run(checkpoint_command("list", {folder.path("none")})).exit.status, 2);

  std::string file = folder.read("kept/step-000000012/rank-1.safetensors");
  file.back() = char(file.back() ^ 1);
  folder.write("kept/step-000000012/rank-1.safetensors", file);
  const Finished damaged = run(checkpoint_command("verify", {kept, "--json"}));
  EXPECT_EQ(damaged.exit.status, 1) << damaged;
  EXPECT_THAT(damaged.out, HasSubstr("rank-1.safetensors is damaged: its sum is"));
  EXPECT_EQ(run(checkpoint_command("export", {kept, model})).exit.status, 2);
}

TEST(TrainCheckpoint, ResumeNeedsAFolder) {
  const ScratchFolder folder = job_folder(job_of("2"));
  const Finished finished = run(train_command(folder, {"--resume"}));
  EXPECT_EQ(finished.exit.status, 2) << finished;
  EXPECT_THAT(finished.err, HasSubstr("checkpoint.resume is only for jobs with checkpoint.folder"));
}

}  // namespace
}  // namespace remuda::tests
