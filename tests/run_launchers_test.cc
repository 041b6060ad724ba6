// Programs that others wrote for torchrun and mpirun, unmodified, under `remuda run`.
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::SizeIs;

class RunLaunchers : public JobTest {};

/// Debian's own Python first, as Debian's packages are installed there; nothing where no Python has PyTorch.
std::string python_with_torch() {
  for (const char* python : {"/usr/bin/python3", "python3"})
    if (run({python, "-c", "import torch.distributed"}).exit.ok()) return python;
  return "";
}

TEST_F(RunLaunchers, StartsAnUnmodifiedPyTorchScriptOnEachDevice) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no python3 here imports torch: install python3-torch";
  const std::string script = std::string(TEST_FOLDER) + "/ddp/script.py";
  const Finished finished = ask({"run", "-n", "2", "--each", "--", python, "-B", script});
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_THAT(finished.out, ContainsRegex("rank 0 of 2 on [0-7]: 5 steps")) << finished;
  EXPECT_THAT(finished.out, ContainsRegex("rank 1 of 2 on [0-7]: 5 steps")) << finished;
}

TEST_F(RunLaunchers, TellsEachRankAllThatTorchrunWould) {
  const std::string script =
      "echo $RANK $LOCAL_RANK $ROLE_RANK $GROUP_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $ROLE_WORLD_SIZE $GROUP_WORLD_SIZE "
      "$ROLE_NAME $MASTER_ADDR $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS $TORCHELASTIC_RUN_ID "
      "$TORCHELASTIC_USE_AGENT_STORE; test \"$MASTER_PORT\" -gt 0 && test \"$OMP_NUM_THREADS\" -gt 0";
  std::vector<std::string> unset{"env", "-u", "OMP_NUM_THREADS"};
  for (const std::string& word : line({"run", "--each", "--restart", "3", "--", "/bin/sh", "-c", script}))
    unset.push_back(word);
  const Finished finished = run(unset, environment());
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(finished.out, "0 0 0 0 1 1 1 1 default 127.0.0.1 0 3 remuda-1 False\n");
}

TEST_F(RunLaunchers, LeavesTheNumberOfThreadsToTheUser) {
  process::Environment environment = this->environment();
  environment.emplace_back("OMP_NUM_THREADS", "7");
  const Finished finished = run(line({"run", "--each", "--", "/bin/sh", "-c", "echo $OMP_NUM_THREADS"}), environment);
  EXPECT_EQ(finished.out, "7\n") << finished;
}

class RunMpi : public RunLaunchers {
 protected:
  void SetUp() override {
    if (std::string_view(MPI_PROGRAM).empty()) GTEST_SKIP() << "built without MPI: install libopenmpi-dev";
    if (!run({"mpirun", "--version"}).exit.ok()) GTEST_SKIP() << "there is no mpirun: install openmpi-bin";
  }
  /// Without these OpenMPI refuses to run as root, with more ranks than cores, or without ssh; and a sanitizer would
  /// report leaks of OpenMPI itself.
  process::Environment environment() const override {
    process::Environment environment = JobTest::environment();
    environment.insert(environment.end(), {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                           {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                           {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                           {"OMPI_MCA_plm_rsh_agent", "/bin/true"},
                                           {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
                                           {"ASAN_OPTIONS", "detect_leaks=0"}});
    return environment;
  }
  std::vector<std::string> mpi_line(const std::vector<std::string>& program) const {
    std::vector<std::string> arguments{"run", "-n", "2", "--", "mpirun", "-np", "2"};
    for (const std::string& word : line({"bind", "--"})) arguments.push_back(word);
    arguments.insert(arguments.end(), program.begin(), program.end());
    return arguments;
  }
};

TEST_F(RunMpi, GivesEachRankOfAnMpiProgramADeviceOfItsOwn) {
  const Finished finished = ask(mpi_line({MPI_PROGRAM}));
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_THAT(finished.out, ContainsRegex("rank 0 of 2: [0-7]\nrank 1 of 2: [0-7]\n")) << finished;
}

TEST_F(RunMpi, WouldShareDevicesWithoutBind) {
  const Finished finished = ask({"run", "-n", "2", "--", "mpirun", "-np", "2", MPI_PROGRAM});
  EXPECT_EQ(finished.exit.status, 1) << "the program itself must see the difference: " << finished;
}

TEST_F(RunMpi, LeavesNoRankBehindWhenItIsKilled) {
  const auto program =
      begin(mpi_line({"/bin/sh", "-c", "echo $$ >\"$OUT/rank$OMPI_COMM_WORLD_RANK\"; exec sleep 1000"}));
  const std::vector<pid_t> ranks{pid_in("rank0"), pid_in("rank1")};
  EXPECT_THAT(leases(), SizeIs(2));
  program->signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return all_gone(ranks); }, kPatience_s));
}

}  // namespace
}  // namespace remuda::tests
