// `remuda run` on a live machine simulated by the test library: what jobs see, which processes count as holders, and
// that devices with faults are left out.
#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sstream>
#include <unistd.h>

#include "base/env.h"
#include "tests/nvml/library.h"
#include "tests/nvml/live_job.h"

namespace remuda::tests::nvml {
namespace {

using testing::AllOf;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class RunLive : public LiveJobTest {
 protected:
  /// In PCI order.
  std::vector<std::string> uuids_of(const Json& leases) const {
    std::vector<std::string> uuids;
    for (const Device& device : machine_.devices)
      for (const Json& lease : leases)
        if (device.uuid.has_value() && lease["device"] == device.uuid.value()) uuids.push_back(device.uuid.value());
    return uuids;
  }
  static Process process(pid_t pid) {
    Process process;
    process.pid = pid;
    process.memory_bytes = int64_t{1} << 30;
    return process;
  }
};

TEST_F(RunLive, ShowsAProgramTheDevicesOfItsLeaseAndNoOthers) {
  EXPECT_THAT(lines_of(run({NVML_VISIBLE_PROGRAM}, environment()).out), SizeIs(kGpus)) << "without a lease it sees all";
  for (const char* count : {"1", "2", "5", "8"}) {
    const std::string script = fmt::format("{} && {} ps --json >\"$OUT/leases\"", NVML_VISIBLE_PROGRAM, REMUDA_PROGRAM);
    const Finished finished = ask({"run", "-n", count, "--", "/bin/sh", "-c", script});
    EXPECT_EQ(finished.exit.status, 0) << finished;
    const Json leases = parse_json(folder_.read("leases"), "leases").value_or(Json{})["leases"];
    EXPECT_THAT(leases, SizeIs(std::atoi(count)));
    EXPECT_THAT(lines_of(finished.out), ElementsAreArray(uuids_of(leases))) << count << " " << leases.dump();
  }
}

TEST_F(RunLive, ShowsEachRankOneDeviceOfTheLease) {
  const std::string script = fmt::format("{} >\"$OUT/rank$RANK\"", NVML_VISIBLE_PROGRAM);
  const Finished finished = ask({"run", "-n", "4", "--each", "--", "/bin/sh", "-c", script});
  EXPECT_EQ(finished.exit.status, 0) << finished;
  std::set<std::string> seen;
  for (int rank = 0; rank < 4; ++rank) {
    const auto lines = lines_of(folder_.read(fmt::format("rank{}", rank)));
    ASSERT_THAT(lines, SizeIs(1)) << rank;
    seen.insert(lines[0]);
  }
  EXPECT_THAT(seen, SizeIs(4));
}

/// A command on the machine of a case in testdata/cases, with what the driver does there.
Finished ask_of_case(const std::vector<std::string>& words, const std::string& file, const std::string& faults,
                     const ScratchFolder& folder) {
  std::vector<std::string> argv{REMUDA_PROGRAM};
  argv.insert(argv.end(), words.begin(), words.end());
  return run(argv, {{"LD_LIBRARY_PATH", library_folder("current")},
                    {"XDG_STATE_HOME", folder.path("state")},
                    {env::test_nvml.name, std::string(REMUDA_CASES) + "/" + file},
                    {env::test_nvml_faults.name, faults},
                    {env::probe_timeout.name, "1"}});
}

/// testdata/cases/live-driver-mismatch, and others in which a driver is there and does not answer.
TEST_F(RunLive, SaysWhyADriverDoesNotAnswerWhereItsGpusAreWanted) {
  for (const auto& [faults, reason] :
       {std::pair{"mismatch", "different versions (error 18), as after an upgrade: restart the machine"},
        std::pair{"no-init=9", "kernel module is not loaded"}, std::pair{"no-init=999", "error 999"}}) {
    const auto ask = [&](const std::vector<std::string>& words) {
      return ask_of_case(words, "live-driver-mismatch/live.json", faults, folder_);
    };
    for (const auto& words : std::vector<std::vector<std::string>>{{"run", "-n", "1", "--no-wait", "--", "true"},
                                                                   {"run", "-n", "2", "--dry-run", "--", "true"},
                                                                   {"place", "-n", "1"},
                                                                   {"place", "-n", "1", "--model", "*A5000*"}}) {
      const Finished refused = ask(words);
      EXPECT_EQ(refused.exit.status, 4) << refused;
      EXPECT_THAT(refused.err, AllOf(HasSubstr(reason), testing::Not(HasSubstr("there is no GPU")))) << refused;
    }
    for (const auto& words : std::vector<std::vector<std::string>>{{"place", "--device", "gpu:0"}, {"list", "gpu:0"}}) {
      const Finished unknown = ask(words);
      EXPECT_EQ(unknown.exit.status, 2) << unknown;
      EXPECT_THAT(unknown.err, HasSubstr(reason)) << unknown;
    }
    EXPECT_THAT(ask({"doctor"}).out, AllOf(HasSubstr("FAIL  probe"), testing::Not(HasSubstr("no GPU here"))));
  }
}

TEST_F(RunLive, TakesAProcessWithoutALeaseForTheHolderOfItsDevice) {
  RunningProgram somebody({"sleep", "1000"});
  gpu_(3).status.processes = std::vector{process(somebody.pid())};
  happens();
  const std::string ps = ask({"ps"}).out;
  EXPECT_THAT(ps, AllOf(HasSubstr("no lease"), HasSubstr(fmt::format("process {}", somebody.pid())))) << ps;
  const Finished others = ask({"run", "-n", "7", "--no-wait", "--", NVML_VISIBLE_PROGRAM});
  EXPECT_EQ(others.exit.status, 0) << others;
  EXPECT_THAT(others.out, testing::Not(HasSubstr(gpu_(3).uuid.value())));
  const Finished refused = ask({"run", "-n", "8", "--no-wait", "--", "true"});
  EXPECT_EQ(refused.exit.status, 4) << refused;

  const auto waiter = begin({"run", "-n", "8", "--", "echo", "all"});
  ASSERT_TRUE(comes_to_wait(1));
  gpu_(3).status.processes = std::vector<Process>{};
  happens();
  const Finished finished = waiter->finish(kPatience_s);
  EXPECT_EQ(finished.out, "all\n") << finished;
}

TEST_F(RunLive, TakesAJobsOwnProcessesForItsLease) {
  const auto job = begin({"run", "--", "/bin/sh", "-c", "echo $$ >\"$OUT/job\"; exec sleep 1000"});
  const pid_t pid = pid_in("job");
  const std::vector<std::string> held = uuids_of(leases());
  ASSERT_THAT(held, SizeIs(1));
  for (size_t gpu = 0; gpu < kGpus; ++gpu)
    if (gpu_(gpu).uuid == held[0]) gpu_(gpu).status.processes = std::vector{process(pid)};
  happens();
  EXPECT_THAT(leases(), SizeIs(1)) << leases().dump();
  EXPECT_EQ(ask({"run", "-n", "7", "--no-wait", "--", "true"}).exit.status, 0);
  EXPECT_EQ(ask({"run", "-n", "8", "--no-wait", "--", "true"}).exit.status, 4);
  job->signal(SIGTERM);
  job->finish(kPatience_s);
  for (size_t gpu = 0; gpu < kGpus; ++gpu) gpu_(gpu).status.processes = std::vector<Process>{};
  happens();
  EXPECT_EQ(ask({"run", "-n", "8", "--no-wait", "--", "true"}).exit.status, 0);
}

TEST_F(RunLive, LeavesALostDeviceOutUntilItIsBack) {
  faults_ = "lost=2";
  const Finished others = ask({"run", "-n", "7", "--no-wait", "--", NVML_VISIBLE_PROGRAM});
  EXPECT_EQ(others.exit.status, 0) << others;
  EXPECT_THAT(lines_of(others.out), SizeIs(7));
  EXPECT_THAT(others.out, testing::Not(HasSubstr(gpu_(2).uuid.value())));
  const Finished refused = ask({"run", "-n", "8", "--no-wait", "--", "true"});
  EXPECT_EQ(refused.exit.status, 4) << refused;
  EXPECT_THAT(refused.err, HasSubstr("is lost")) << refused;
  for (const auto& flags :
       {std::vector<std::string>{"--mem", "24GiB"}, {"--model", "*Test GPU*"}, {"--link", "nvlink"}}) {
    std::vector<std::string> arguments{"run", "-n", "8", "--no-wait", "--", "true"};
    arguments.insert(arguments.begin() + 1, flags.begin(), flags.end());
    EXPECT_EQ(ask(arguments).exit.status, 4) << flags[0] << ": it may be what is asked for";
  }
  faults_ = "";
  EXPECT_EQ(ask({"run", "-n", "8", "--no-wait", "--", "true"}).exit.status, 0);
}

TEST_F(RunLive, WaitsForADeviceThatMustBeReset) {
  gpu_(5).status.remapped_rows = 1;
  gpu_(5).status.remap_pending = true;
  happens();
  const Finished others = ask({"run", "-n", "7", "--no-wait", "--", NVML_VISIBLE_PROGRAM});
  EXPECT_THAT(others.out, testing::Not(HasSubstr(gpu_(5).uuid.value()))) << others;
  const auto waiter = begin({"run", "-n", "8", "--", "echo", "all"});
  ASSERT_TRUE(comes_to_wait(1));
  EXPECT_THAT(ask({"why", "2"}).out, HasSubstr("must be reset to replace a faulty memory row"));
  gpu_(5).status.remap_pending = false;
  happens();
  const Finished finished = waiter->finish(kPatience_s);
  EXPECT_EQ(finished.out, "all\n") << finished;
}

TEST_F(RunLive, LeavesOutADeviceThatItsDriverWantsReset) {
  gpu_(5).status.recovery_action = RecoveryAction::reset;
  happens();
  const Finished others = ask({"run", "-n", "7", "--no-wait", "--", NVML_VISIBLE_PROGRAM});
  EXPECT_THAT(others.out, testing::Not(HasSubstr(gpu_(5).uuid.value()))) << others;
  const Finished refused = ask({"run", "-n", "8", "--no-wait", "--", "true"});
  EXPECT_EQ(refused.exit.status, 4) << refused;
  EXPECT_THAT(refused.err, HasSubstr("must be reset, as its driver says"));
  gpu_(5).status.recovery_action = RecoveryAction::none;
  happens();
  EXPECT_EQ(ask({"run", "-n", "8", "--no-wait", "--", "true"}).exit.status, 0);
}

/// The driver reports an error once, to the processes that watch at that time.
TEST_F(RunLive, LeavesOutADeviceThatHadAFatalErrorWhileItWaited) {
  RunningProgram somebody({"sleep", "1000"});
  gpu_(3).status.processes = std::vector{process(somebody.pid())};
  happens();
  const auto waiter = begin({"run", "-n", "8", "--", "echo", "all"});
  ASSERT_TRUE(comes_to_wait(1));
  const auto comes_to_say = [&](const std::string& words, bool said) {
    return eventually(
        [&] {
          const Json waiting = parse_json(ask({"queue", "--json"}).out, "queue").value_or(Json{})["waiting"];
          return waiting.size() == 1 && (waiting[0].dump().find(words) != std::string::npos) == said;
        },
        kPatience_s);
  };
  gpu_(5).status.xid = 79;
  happens();
  EXPECT_TRUE(comes_to_say("code 79", true));
  gpu_(5).status.xid = 0;
  gpu_(3).status.processes = std::vector<Process>{};
  gpu_(6).status.remapped_rows = 1;
  gpu_(6).status.remap_pending = true;  // shows that the waiting job has read the machine again
  happens();
  EXPECT_TRUE(comes_to_say("memory row", true));
  gpu_(6).status.remap_pending = false;
  happens();
  EXPECT_TRUE(comes_to_say("memory row", false));
  EXPECT_TRUE(comes_to_say("code 79", true)) << "it has not forgotten";
  EXPECT_EQ(ask({"run", "--", "true"}).exit.status, 0);  // its keeper knows of no error, and grants all 8
  EXPECT_TRUE(comes_to_say("code 79", true)) << "it does not start on a device that it knows to be unwell";
  waiter->signal(SIGTERM);
  waiter->finish();
}

}  // namespace
}  // namespace remuda::tests::nvml
