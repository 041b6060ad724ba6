// `remuda run` as users run it, on a recorded machine of eight GPUs: what jobs see, how they end, and that nothing is
// left, whichever process is killed.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/program.h"

namespace remuda::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Run : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(eventually([&] { return leases().empty(); }, kPatience_s)) << "leases are left";
    EXPECT_THAT(processes_left(), IsEmpty());
  }

  std::vector<std::string> line(std::vector<std::string> flags, const std::string& script) const {
    std::vector<std::string> argv{REMUDA_PROGRAM, "run", "--machine", kMachine};
    std::ranges::move(flags, std::back_inserter(argv));
    std::ranges::copy(std::vector<std::string>{"--", "/bin/sh", "-c", script}, std::back_inserter(argv));
    return argv;
  }
  process::Environment environment() const {
    return {{"XDG_STATE_HOME", folder_.path("state")}, {"OUT", folder_.path("")}};
  }
  Finished run(std::vector<std::string> flags, const std::string& script) const {
    return tests::run(line(std::move(flags), script), environment());
  }
  std::unique_ptr<RunningProgram> begin(std::vector<std::string> flags, const std::string& script) const {
    return std::make_unique<RunningProgram>(line(std::move(flags), script), environment());
  }
  Finished ask(const std::string& command, std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.begin(), {REMUDA_PROGRAM, command, "--machine", kMachine});
    return tests::run(arguments, environment());
  }

  Json pool() const { return parse_json(ask("ps", {"--json"}).out, "ps").value_or(Json{}); }
  Json leases() const { return pool()["leases"]; }
  size_t waiting() const { return pool()["waiting"].size(); }
  bool comes(const std::string& file) const {
    return eventually([&] { return folder_.has(file); }, kPatience_s);
  }
  pid_t pid_in(const std::string& file) const {
    EXPECT_TRUE(comes(file));
    EXPECT_TRUE(eventually([&] { return folder_.read(file).ends_with('\n'); }, kPatience_s));
    return std::stoi("0" + folder_.read(file));
  }
  /// Processes that carry this test's folder in their environment.
  std::vector<pid_t> processes_left() const {
    std::vector<pid_t> left;
    eventually([&] { return (left = carriers_of(folder_.path("state"))).empty(); }, kPatience_s);
    return left;
  }
  static std::vector<pid_t> carriers_of(const std::string& text);

  static constexpr const char* kMachine = REMUDA_MACHINES "/nv-dgx1-v100-8gpu-4nic.json";
  ScratchFolder folder_;
};

std::vector<pid_t> Run::carriers_of(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto environment = read_text(entry.path().string() + "/environ");
    if (!environment || environment->find("XDG_STATE_HOME=" + text) == std::string::npos) continue;
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (is_running(pid)) found.push_back(pid);
  }
  return found;
}

constexpr const char* kForever = "echo $$ >\"$OUT/job\"; while :; do sleep 0.1; done";

TEST_F(Run, ShowsTheJobItsDevicesAndNoOthers) {
  const Finished one = run({}, "echo $CUDA_VISIBLE_DEVICES,$CUDA_DEVICE_ORDER,[$ROCR_VISIBLE_DEVICES],$REMUDA_JOB");
  EXPECT_EQ(one.exit.status, 0) << one;
  EXPECT_TRUE(one.out.size() > 2 && one.out.substr(1) == ",PCI_BUS_ID,[],1\n") << one;
  const Finished pair = run({"-n", "2"}, "echo $CUDA_VISIBLE_DEVICES $REMUDA_DEVICES $REMUDA_SHARES");
  EXPECT_THAT(pair.out, testing::ContainsRegex("^[0-7],[0-7] gpu:[0-7],gpu:[0-7] 0.5,0.5\n$")) << pair;
  EXPECT_EQ(pair.err, "");
}

TEST_F(Run, PassesTheStatusThrough) {
  EXPECT_EQ(run({}, "exit 7").exit.status, 7);
  EXPECT_EQ(run({}, "kill -9 $$").exit.status, 128 + SIGKILL);
  EXPECT_EQ(
      tests::run({REMUDA_PROGRAM, "run", "--machine", kMachine, "--", "/no/such/program"}, environment()).exit.status,
      127);
  EXPECT_EQ(tests::run({REMUDA_PROGRAM, "run", "--machine", kMachine, "--", "/etc/passwd"}, environment()).exit.status,
            126);
  EXPECT_EQ(run({"-n", "9"}, "true").exit.status, 3);
  EXPECT_EQ(run({"--mem", "lots"}, "true").exit.status, 2);
  EXPECT_EQ(run({"--after", "99"}, "true").exit.status, 2);
}

TEST_F(Run, HandsArgumentsOnAsTheyAre) {
  const Finished finished = tests::run(
      {REMUDA_PROGRAM, "run", "--machine", kMachine, "-q", "--", "printf", "%s|", "[a,b]", "--", "-n", "", "{}", "x y"},
      environment());
  EXPECT_EQ(finished.out, "[a,b]|--|-n||{}|x y|") << finished;
}

TEST_F(Run, GivesItsInputAndItsFolderToTheJob) {
  folder_.write("input", "hello\n");
  const Finished finished =
      tests::run({"/bin/sh", "-c",
                  fmt::format("cd '{}' && '{}' run --machine '{}' -- /bin/sh -c 'cat; pwd' <input", folder_.path(""),
                              REMUDA_PROGRAM, kMachine)},
                 environment());
  EXPECT_THAT(finished.out, testing::StartsWith("hello\n" + folder_.path("").substr(0, folder_.path("").size() - 1)))
      << finished;
}

TEST_F(Run, NeverGivesADeviceToTwo) {
  const char* script =
      "for d in $(echo $REMUDA_DEVICES | tr , ' '); do mkdir \"$OUT/lock-$d\" || echo twice; done; sleep 0.2;"
      "for d in $(echo $REMUDA_DEVICES | tr , ' '); do rmdir \"$OUT/lock-$d\"; done";
  std::vector<std::unique_ptr<RunningProgram>> programs;
  for (int i = 0; i < 12; ++i) programs.push_back(begin({"-n", std::to_string(1 + i % 4)}, script));
  for (const auto& program : programs) {
    const Finished finished = program->finish();
    EXPECT_EQ(finished.exit.status, 0) << finished;
    EXPECT_EQ(finished.out, "") << finished;
  }
}

TEST_F(Run, WaitsForItsTurnAndSaysWhy) {
  const auto first = begin({"-n", "8"}, kForever);
  ASSERT_TRUE(comes("job"));
  const auto second = begin({"-n", "1"}, "echo ran");
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }, kPatience_s));
  EXPECT_THAT(ask("queue").out, HasSubstr("echo ran"));
  EXPECT_THAT(ask("list").out, HasSubstr("gpu:0 is leased to "));
  EXPECT_THAT(ask("why", {"2"}).out, HasSubstr("Job 2 has waited"));
  EXPECT_EQ(run({"--no-wait"}, "true").exit.status, 4);
  EXPECT_EQ(run({"--dry-run"}, "true").exit.status, 4);
  EXPECT_EQ(ask("cancel", {"1"}).exit.status, 0);
  EXPECT_EQ(first->finish().exit.status, 128 + SIGTERM);
  const Finished finished = second->finish(kPatience_s);
  EXPECT_EQ(finished.out, "ran\n") << finished;
  EXPECT_THAT(finished.err, HasSubstr("job 2 waits: ")) << finished;
  EXPECT_THAT(ask("why", {"1"}).out, HasSubstr("was cancelled"));
}

TEST_F(Run, PlaceCountsWhatIsLeased) {
  EXPECT_EQ(ask("place", {"-n", "8"}).exit.status, 0);
  EXPECT_FALSE(folder_.has("state")) << "a question makes no pool";
  const auto holder = begin({"-n", "7"}, kForever);
  ASSERT_TRUE(comes("job"));
  const Finished free = ask("place");
  EXPECT_EQ(free.exit.status, 0) << free;
  const Json free_id = parse_json(ask("place", {"--json"}).out, "place").value()["devices"][0];
  for (const Json& lease : leases()) EXPECT_NE(lease["device"], free_id);
  const Finished refused = ask("place", {"-n", "2", "--explain"});
  EXPECT_EQ(refused.exit.status, 4) << refused;
  EXPECT_THAT(refused.err, HasSubstr("1 of the 8 GPUs that suit is free")) << refused;
  EXPECT_THAT(refused.out, HasSubstr("(job 1)")) << refused;
  EXPECT_EQ(ask("place", {"--busy", free.out.substr(0, free.out.find('\n'))}).exit.status, 4);
  EXPECT_EQ(ask("place", {"-n", "9"}).exit.status, 3);
  EXPECT_EQ(ask("cancel", {"1"}).exit.status, 0);
  EXPECT_EQ(holder->finish(kPatience_s).exit.status, 128 + SIGTERM);
  EXPECT_EQ(ask("place", {"-n", "8"}).exit.status, 0);
}

TEST_F(Run, PlaceSaysThatThePoolCannotBeRead) {
  EXPECT_EQ(run({}, "true").exit.status, 0);
  for (const auto& pool : std::filesystem::directory_iterator(folder_.path("state/remuda/pools")))
    for (const auto& file : std::filesystem::directory_iterator(pool))
      if (const auto kind = file.path().extension(); kind == ".db" || kind == ".db-wal")
        std::filesystem::resize_file(file, 100);
  const Finished refused = ask("place");
  EXPECT_NE(refused.exit.status, 0) << refused;
  EXPECT_THAT(refused.err, HasSubstr("pool")) << refused;
  std::filesystem::remove_all(folder_.path("state"));
}

TEST_F(Run, HandsSignalsOn) {
  const auto program = begin({}, "trap 'echo got; exit 9' USR1; echo $$ >\"$OUT/job\"; while :; do sleep 0.05; done");
  ASSERT_TRUE(comes("job"));
  ::kill(program->pid(), SIGUSR1);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 9) << finished;
  EXPECT_EQ(finished.out, "got\n");
}

TEST_F(Run, KillsAJobThatDoesNotHearItsTimeLimit) {
  const Finished finished =
      run({"--time-limit", "2s", "--grace", "0.3s"}, "trap '' TERM; while :; do sleep 0.05; done");
  EXPECT_EQ(finished.exit.status, 128 + SIGKILL) << finished;
  EXPECT_THAT(finished.err, HasSubstr("time limit")) << finished;
}

TEST_F(Run, LetsAJobWriteItsCheckpoint) {
  const Finished finished = run({"--time-limit", "2s", "--signal", "USR1", "--grace", "20s"},
                                "trap 'echo saved; exit 0' USR1; while :; do sleep 0.05; done");
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(finished.out, "saved\n");
}

TEST_F(Run, StartsAgainWhatFailed) {
  const char* script = "echo x >>\"$OUT/tries\"; test $(wc -l <\"$OUT/tries\") -ge 2 || exit 5";
  EXPECT_EQ(run({"--restart", "2", "--restart-on", "5"}, script).exit.status, 0);
  EXPECT_EQ(folder_.read("tries"), "x\nx\n");
  EXPECT_EQ(run({"--restart", "2", "--restart-on", "1"}, "echo y >>\"$OUT/once\"; exit 5").exit.status, 5);
  EXPECT_EQ(folder_.read("once"), "y\n");
}

TEST_F(Run, MakesRoomForAHigherPriorityAndRunsAgain) {
  const auto sweep = begin({"-n", "8", "--preemptible"},
                           "trap 'echo saved; exit 0' TERM; echo started; echo >\"$OUT/job\";"
                           "test -e \"$OUT/again\" && exit 0; echo >\"$OUT/again\"; while :; do sleep 0.05; done");
  ASSERT_TRUE(comes("job"));
  EXPECT_EQ(run({"--priority", "1"}, "true").exit.status, 0);
  const Finished finished = sweep->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(finished.out, "started\nsaved\nstarted\n") << finished;
}

TEST_F(Run, KeepsTheLeaseForProcessesInTheBackground) {
  const auto program = begin({}, "(setsid sleep 1000 & echo $! >\"$OUT/back\"); exit 3");
  const pid_t background = pid_in("back");
  const std::string holder = fmt::format("sleep (pid {}) still holds gpu:", background);
  EXPECT_TRUE(eventually([&] { return program->err().find(holder) != std::string::npos; }, kPatience_s))
      << program->err();
  EXPECT_THAT(leases(), SizeIs(1));
  ::kill(background, SIGKILL);
  EXPECT_EQ(program->finish(kPatience_s).exit.status, 3);
}

TEST_F(Run, FreesTheDevicesWhenItIsKilled) {
  const auto program = begin({"-n", "8"}, "setsid sleep 1000 & sleep 1000 & echo $$ >\"$OUT/job\"; wait");
  const pid_t job = pid_in("job");
  ::kill(program->pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return !is_running(job); }, kPatience_s));
  EXPECT_TRUE(eventually([&] { return leases().empty(); }, kPatience_s));
}

TEST_F(Run, FreesTheDevicesWhenItsKeeperIsKilled) {
  const auto program = begin({"-n", "8"}, "setsid sleep 1000 & sleep 1000 & echo $$ >\"$OUT/job\"; wait");
  const pid_t job = pid_in("job");
  const auto keepers = children_of(program->pid());
  ASSERT_THAT(keepers, SizeIs(1));
  ::kill(keepers[0], SIGKILL);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 125) << finished;
  EXPECT_FALSE(is_running(job));
  EXPECT_THAT(leases(), IsEmpty());
}

TEST_F(Run, IsTidiedUpByTheNextWhenFrontAndKeeperAreKilled) {
  const auto program = begin({"-n", "8"}, "setsid sleep 1000 & echo $$ >\"$OUT/job\"; wait");
  pid_in("job");
  const auto waiter = begin({"-n", "8"}, "echo mine");
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }, kPatience_s));
  const auto keepers = children_of(program->pid());
  ::kill(program->pid(), SIGSTOP);  // so that it cannot help
  for (const pid_t keeper : keepers) ::kill(keeper, SIGKILL);
  ::kill(program->pid(), SIGKILL);
  const Finished finished = waiter->finish(kPatience_s);
  EXPECT_EQ(finished.out, "mine\n") << finished;
}

TEST_F(Run, IsTidiedUpAlthoughTheFirstInLineIsStopped) {
  const auto holder = begin({"-n", "4"}, "setsid sleep 1000 & echo $$ >\"$OUT/job\"; wait");
  const auto other = begin({"-n", "4"}, "echo $$ >\"$OUT/other\"; while :; do sleep 0.1; done");
  pid_in("job");
  pid_in("other");
  const auto first = begin({"-n", "8"}, "echo first");
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }, kPatience_s));
  const auto second = begin({"-n", "4"}, "echo second");
  ASSERT_TRUE(eventually([&] { return waiting() == 2; }, kPatience_s));
  const auto stopped = children_of(first->pid());
  for (const pid_t keeper : stopped) ::kill(keeper, SIGSTOP);
  const auto keepers = children_of(holder->pid());
  ::kill(holder->pid(), SIGSTOP);  // so that it cannot help
  for (const pid_t keeper : keepers) ::kill(keeper, SIGKILL);
  ::kill(holder->pid(), SIGKILL);
  const Finished finished = second->finish(kPatience_s);
  EXPECT_EQ(finished.out, "second\n") << finished;
  for (const pid_t keeper : stopped) ::kill(keeper, SIGCONT);
  other->signal(SIGTERM);
  EXPECT_EQ(first->finish(kPatience_s).out, "first\n");
}

TEST_F(Run, EndsWithItsJob) {
  const auto program = begin({}, kForever);
  ::kill(pid_in("job"), SIGKILL);
  EXPECT_EQ(program->finish(kPatience_s).exit.status, 128 + SIGKILL);
}

TEST_F(Run, LeavesTheQueueWhenAWaiterIsKilledOrInterrupted) {
  const auto first = begin({"-n", "8"}, kForever);
  ASSERT_TRUE(comes("job"));
  const auto killed = begin({}, "true"), interrupted = begin({}, "true");
  ASSERT_TRUE(eventually([&] { return waiting() == 2; }, kPatience_s));
  ::kill(killed->pid(), SIGKILL);
  ::kill(interrupted->pid(), SIGINT);
  EXPECT_EQ(interrupted->finish(kPatience_s).exit.status, 128 + SIGINT);
  EXPECT_TRUE(eventually([&] { return waiting() == 0; }, kPatience_s));
  first->signal(SIGTERM);
  first->finish(kPatience_s);
}

TEST_F(Run, RunsAfterTheJobItWaitsForUnlessThatFailed) {
  const auto first = begin({}, "echo >\"$OUT/job\"; while ! test -e \"$OUT/go\"; do sleep 0.05; done; exit 1");
  ASSERT_TRUE(comes("job"));
  const auto second = begin({"--after", "1"}, "echo never");
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }, kPatience_s));
  folder_.write("go", "");
  EXPECT_EQ(first->finish(kPatience_s).exit.status, 1);
  const Finished finished = second->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 125) << finished;
  EXPECT_EQ(finished.out, "");
}

TEST_F(Run, WritesTerminalAndLog) {
  const Finished finished = run({"--log", folder_.path("log")}, "echo out; echo err >&2");
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
  EXPECT_THAT(folder_.read("log"), testing::AllOf(HasSubstr("out\n"), HasSubstr("err\n")));
}

TEST_F(Run, DoesNotWaitForSomebodyToReadItsLog) {
  ASSERT_EQ(::mkfifo(folder_.path("pipe").c_str(), 0600), 0);
  const Finished finished = run({"--log", folder_.path("pipe")}, "true");
  EXPECT_EQ(finished.exit.status, 125) << finished;
  EXPECT_THAT(finished.err, HasSubstr("is a pipe that nobody reads")) << finished;
}

TEST_F(Run, StartsARankForEachDevice) {
  const Finished finished =
      run({"-n", "4", "--each"},
          "echo \"$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $CUDA_VISIBLE_DEVICES\" "
          ">\"$OUT/rank$RANK\"; test -n \"$MASTER_PORT$TORCHELASTIC_RUN_ID\"");
  EXPECT_EQ(finished.exit.status, 0) << finished;
  std::set<std::string> devices;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string text = folder_.read(fmt::format("rank{}", rank));
    EXPECT_THAT(text, testing::StartsWith(fmt::format("{0} {0} 4 4 0 ", rank)));
    devices.insert(text.substr(10));
  }
  EXPECT_THAT(devices, SizeIs(4));
}

TEST_F(Run, EndsAllRanksWhenOneFails) {
  const Finished finished = run({"-n", "3", "--each"}, "test $RANK = 1 && exit 4; while :; do sleep 0.05; done");
  EXPECT_EQ(finished.exit.status, 4) << finished;
}

TEST_F(Run, BindsEachProcessOfAnMpiLaunchToADevice) {
  const std::string bind =
      fmt::format("'{}' bind --machine '{}' -- /bin/sh -c 'echo $CUDA_VISIBLE_DEVICES'", REMUDA_PROGRAM, kMachine);
  const Finished finished =
      run({"-n", "2"},
          fmt::format("echo $CUDA_VISIBLE_DEVICES; for i in 0 1 2; do OMPI_COMM_WORLD_LOCAL_RANK=$i {}; done; {}", bind,
                      bind));
  EXPECT_EQ(finished.exit.status, 2) << "the last has no rank: " << finished;
  EXPECT_THAT(finished.err, HasSubstr("OMPI_COMM_WORLD_LOCAL_RANK"));
  ASSERT_EQ(finished.out.size(), 10U) << finished;
  const std::string first = finished.out.substr(0, 1), second = finished.out.substr(2, 1);
  EXPECT_EQ(finished.out.substr(4), first + "\n" + second + "\n" + first + "\n");
}

TEST_F(Run, HoldsDevicesForAShellUntilTheyAreReleased) {
  const RunningProgram shell({REMUDA_PROGRAM, "hold", "--machine", kMachine, "-n", "2", "--", "/bin/sh", "-c",
                              "trap '' TERM; echo $CUDA_VISIBLE_DEVICES >\"$OUT/job\"; while :; do sleep 0.1; done"},
                             environment());
  ASSERT_TRUE(comes("job"));
  EXPECT_THAT(leases(), SizeIs(2));
  EXPECT_THAT(ask("ps").out, HasSubstr("hold: "));
  EXPECT_EQ(ask("release", {"1"}).exit.status, 0);
  EXPECT_TRUE(eventually([&] { return leases().empty(); }, kPatience_s));
  EXPECT_EQ(ask("release", {"1"}).exit.status, 2);
}

}  // namespace
}  // namespace remuda::tests
