// `remuda train` as ranks that others start: torchrun, srun and mpirun, on one host and on two.
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <memory>
#include <unistd.h>

#include "base/env.h"
#include "base/listener.h"
#include "tests/job_fixture.h"
#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

/// Two ranks of one job, each `remuda train`, with the variables of their launcher.
class TrainLaunched : public JobTest {
 protected:
  TrainLaunched() : files_(job_folder(without_devices())) {}
  std::vector<std::string> machine() const override { return {}; }
  static JobText without_devices() {
    JobText job;
    job.devices = "";
    return job;
  }
  static process::Environment torchrun(int rank, int port) {
    return {{env::rank.name, std::to_string(rank)},
            {env::local_rank.name, std::to_string(rank)},
            {env::world_size.name, "2"},
            {env::master_addr.name, "127.0.0.1"},
            {env::master_port.name, std::to_string(port)},
            {env::run_id.name, "run"}};
  }
  static process::Environment srun(int rank) {
    return {{env::slurm_job.name, std::to_string(::getpid())},
            {env::slurm_step.name, "0"},
            {env::slurm_rank.name, std::to_string(rank)},
            {env::slurm_local_rank.name, std::to_string(rank)},
            {env::slurm_size.name, "2"},
            {env::slurm_hosts.name, "localhost"}};
  }
  std::unique_ptr<RunningProgram> start(process::Environment rank, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = train_command(files_, {"--json", files_.path("report.json")});
    words.insert(words.end(), more.begin(), more.end());
    for (const auto& variable : environment()) rank.push_back(variable);
    return std::make_unique<RunningProgram>(words, rank);
  }
  /// Both end well, and only rank 0 has a report.
  void expect_trained(RunningProgram& first, RunningProgram& second) const {
    const Finished one = first.finish(), two = second.finish();
    EXPECT_TRUE(one.exit.ok()) << one;
    EXPECT_TRUE(two.exit.ok()) << two;
    EXPECT_THAT(one.out, HasSubstr("loss per epoch"));
    EXPECT_EQ(two.out, "");
    const auto report = parse_json(files_.read("report.json"), "report.json");
    ASSERT_TRUE(report);
    EXPECT_EQ((*report)["devices"].size(), 2);
    const ScratchFolder alone = job_folder(without_devices());
    const Json expected = train_report(alone, {"--devices", "cpu:0"});
    EXPECT_NEAR((*report)["loss_per_epoch"][2], expected["loss_per_epoch"][2], 1e-4);
  }

  const ScratchFolder files_;
};

TEST_F(TrainLaunched, ByTorchrunTrainsTogether) {
  REMUDA_NEEDS_TWO_CORES();
  const int port = free_port().value();
  const auto first = start(torchrun(0, port), {"--devices", "cpu:0,cpu:1"});
  const auto second = start(torchrun(1, port), {"--devices", "cpu:0,cpu:1"});
  expect_trained(*first, *second);
}

TEST_F(TrainLaunched, BySrunFindsRank0AndTheSecretOfTheUser) {
  const auto first = start(srun(0)), second = start(srun(1));
  expect_trained(*first, *second);
}

TEST_F(TrainLaunched, WithinALeaseTakesItsDevices) {
  REMUDA_NEEDS_TWO_CORES();
  std::vector<std::string> words{"run", "-n", "2", "--cpu", "--cpu-devices", "2", "--each", "--"};
  for (const std::string& word : train_command(files_, {"--json", files_.path("report.json")})) words.push_back(word);
  const Finished finished = ask(words);
  EXPECT_TRUE(finished.exit.ok()) << finished;
  EXPECT_EQ(parse_json(files_.read("report.json"), "report").value()["devices"].size(), 2);
}

TEST_F(TrainLaunched, BoundToADeviceOfALeaseTakesThatOne) {
  REMUDA_NEEDS_TWO_CORES();
  const std::string script = fmt::format(
      "for rank in 0 1; do RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={} {} bind -- "
      "\"$@\" & "
      "done; wait",
      free_port().value(), shell_word(REMUDA_PROGRAM));
  std::vector<std::string> words{"run", "-n", "2", "--cpu", "--cpu-devices", "2", "--", "/bin/sh", "-c", script, "sh"};
  for (const std::string& word : train_command(files_, {"--json", files_.path("report.json")})) words.push_back(word);
  const Finished finished = ask(words);
  EXPECT_EQ(parse_json(files_.read("report.json"), "report").value_or(Json{})["devices"].size(), 2) << finished;
}

TEST_F(TrainLaunched, TakesTheDeviceThatTheFileGivesToItsRank) {
  REMUDA_NEEDS_TWO_CORES();
  files_.write("job.toml", JobText{}.text());
  const int port = free_port().value();
  const auto first = start(torchrun(0, port)), second = start(torchrun(1, port));
  EXPECT_TRUE(first->finish().exit.ok()) << first->err();
  EXPECT_TRUE(second->finish().exit.ok()) << second->err();
  const Json report = parse_json(files_.read("report.json"), "report").value();
  EXPECT_EQ(report["devices"][1]["id"], "cpu:1");
}

TEST_F(TrainLaunched, BeyondTheDevicesOfItsHostIsRefused) {
  REMUDA_NEEDS_TWO_CORES();
  process::Environment third = torchrun(2, 1234);
  third.emplace_back(env::world_size.name, "3");
  std::erase_if(third, [](const auto& one) { return one.first == env::world_size.name && one.second == "2"; });
  const Finished refused = start(third, {"--devices", "cpu:0,cpu:1"})->finish();
  EXPECT_EQ(refused.exit.status, 2) << refused;
  EXPECT_EQ(refused.err, "remuda: rank 2 of 3 is number 2 on this host, which has 2 devices for them: cpu:0, cpu:1\n");
}

TEST_F(TrainLaunched, AsksForNoDevices) {
  const Finished refused = start(torchrun(1, 1234), {"-n", "2"})->finish();
  EXPECT_EQ(refused.exit.status, 2) << refused;
  EXPECT_THAT(refused.err,
              HasSubstr("--gpus=2 asks for devices, but torchrun has started this as rank 1 of 2: ask for all "
                        "of them with `remuda run -n 2 -- torchrun ...`"));
}

TEST_F(TrainLaunched, OfAnotherRankThatDiesEndsToo) {
  REMUDA_NEEDS_TWO_CORES();
  const int port = free_port().value();
  const auto first = start(torchrun(0, port), {"--devices", "cpu:0,cpu:1", "--set", "train.epochs=1000000"});
  const auto second = start(torchrun(1, port), {"--devices", "cpu:0,cpu:1", "--set", "train.epochs=1000000"});
  ASSERT_TRUE(eventually([&] { return first->err().find("epoch 1/") != std::string::npos; }, kPatience_s))
      << first->err();
  second->signal(SIGKILL);
  const Finished ended = first->finish(kPatience_s);
  EXPECT_EQ(ended.exit.status, 1) << ended;
  EXPECT_THAT(ended.err, ContainsRegex("rank 0 \\(rank:0\\): .*rank 1"));
}

}  // namespace
}  // namespace remuda::tests
