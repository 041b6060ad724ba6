// `remuda run --share`: the limits of each process, the daemons that run, and that none is left, whichever process is
// killed.
#include "tests/nvml/share.h"

#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>

namespace remuda::tests::nvml {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kLimits =
    "echo $CUDA_VISIBLE_DEVICES $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT;"
    "test -e \"$CUDA_MPS_PIPE_DIRECTORY/pid\" && test -d \"$CUDA_MPS_LOG_DIRECTORY\"";
/// Reports that it runs, and waits for the file "go".
constexpr const char* kUntilGo =
    "echo >\"$OUT/job$REMUDA_JOB\"; echo $CUDA_VISIBLE_DEVICES $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT;"
    "while ! test -e \"$OUT/go\"; do sleep 0.05; done";

TEST_F(Share, IsLimitedThroughADaemonThatEndsWithIt) {
  const Finished finished = run({"--share", "30%", "--device", "0"}, kLimits);
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(finished.out, "GPU-00000000 30 0=12288M\n") << finished;
  EXPECT_THAT(finished.err, AllOf(HasSubstr("30 % of gpu:0 through MPS"), HasSubstr("12.0 GiB"), HasSubstr("(hard)"),
                                  HasSubstr("(advisory)")));
  ASSERT_THAT(calls(), SizeIs(2));
  EXPECT_THAT(calls()[0], HasSubstr("start GPU-00000000 [] 700 "));
  EXPECT_EQ(calls()[1], "end GPU-00000000");
  EXPECT_THAT(daemons(), IsEmpty()) << "it had ended before the job's end was reported";
  EXPECT_EQ(run({"-q", "--share", "30%"}, "true").err, "");
}

TEST_F(Share, OneDaemonServesAllPartsOfADeviceUntilTheLast) {
  const auto first = begin({"--share", "30%", "--device", "0"}, kUntilGo);
  const auto second = begin({"--share", "50%", "--device", "0"}, kUntilGo);
  ASSERT_TRUE(comes("job1") && comes("job2"));
  const Json held = leases();
  ASSERT_THAT(held, SizeIs(2));
  EXPECT_EQ(held[0]["sharing"], "mps");
  EXPECT_EQ(held[0]["limits"], (Json{{"memory", "hard"}, {"compute", "advisory"}}));
  EXPECT_EQ(run({"--share", "20%", "--device", "0"}, kLimits).exit.status, 0);
  EXPECT_THAT(calls(), SizeIs(1)) << "the third has left the daemon to the others";
  folder_.write("go", "");
  EXPECT_EQ(first->finish(kPatience_s).exit.status, 0);
  EXPECT_EQ(second->finish(kPatience_s).exit.status, 0);
  EXPECT_THAT(calls(), SizeIs(2));
}

TEST_F(Share, EachDeviceHasADaemonOfItsOwn) {
  const Finished finished =
      run({"--share", "40%", "-n", "2", "--each"}, fmt::format("exec >\"$OUT/rank$RANK\"; {}", kLimits));
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(folder_.read("rank0"), "GPU-00000000 40 0=16384M\n");
  EXPECT_EQ(folder_.read("rank1"), "GPU-00000001 40 0=16384M\n");
  EXPECT_THAT(finished.err, HasSubstr("40 % of gpu:0, 40 % of gpu:1 through MPS"));
  EXPECT_THAT(calls(), SizeIs(4));
}

TEST_F(Share, NoDaemonForWholeDevicesNorForSeveralInOneProcess) {
  const Finished whole = run({}, "echo [$CUDA_MPS_PIPE_DIRECTORY]");
  EXPECT_EQ(whole.out, "[]\n") << whole;
  EXPECT_EQ(whole.err, "");
  const Finished several = run({"--share", "50%", "-n", "2"}, "echo [$CUDA_MPS_PIPE_DIRECTORY]");
  EXPECT_EQ(several.out, "[]\n") << several;
  EXPECT_THAT(several.err, AllOf(HasSubstr("in time slices"), HasSubstr("--each"), HasSubstr("advisory")));
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(Share, SaysWhereThereIsNoProgram) {
  std::filesystem::remove(folder_.path("bin/nvidia-cuda-mps-control"));
  const Finished finished = run({"--share", "50%"}, "echo [$CUDA_MPS_PIPE_DIRECTORY]");
  EXPECT_EQ(finished.out, "[]\n") << finished;
  EXPECT_THAT(finished.err, HasSubstr("there is no nvidia-cuda-mps-control in PATH"));
}

TEST_F(Share, GoesOnInTimeSlicesWhereTheDaemonDoesNotStart) {
  folder_.write("fail", "");
  const Finished finished = run({"--share", "50%"}, "echo [$CUDA_MPS_PIPE_DIRECTORY]");
  EXPECT_EQ(finished.out, "[]\n") << finished;
  EXPECT_THAT(finished.err, AllOf(HasSubstr("in time slices"), HasSubstr("status 7: no such luck")));
}

TEST_F(Share, GoesOnInTimeSlicesWhereTheDaemonHangs) {
  folder_.write("hang", "");
  const Finished finished = run({"--share", "50%"}, "echo [$CUDA_MPS_PIPE_DIRECTORY]");
  EXPECT_EQ(finished.out, "[]\n") << finished;
  EXPECT_THAT(finished.err, AllOf(HasSubstr("in time slices"), HasSubstr("within 1 s")));
  EXPECT_THAT(daemons(), IsEmpty()) << "the processes it had started are gone, too";
}

TEST_F(Share, DoesNotTouchADaemonThatIsDeafButInUse) {
  const auto first = begin({"--share", "30%", "--device", "0"}, kUntilGo);
  ASSERT_TRUE(comes("job1"));
  folder_.write("deaf", "");
  const Finished second = run({"--share", "30%", "--device", "0"}, "echo [$CUDA_MPS_PIPE_DIRECTORY]");
  EXPECT_EQ(second.out, "[]\n") << second;
  EXPECT_THAT(second.err, HasSubstr("does not answer"));
  EXPECT_THAT(daemons(), Not(IsEmpty()));
  folder_.write("go", "");
  EXPECT_EQ(first->finish(kPatience_s).exit.status, 0);
  EXPECT_THAT(daemons(), IsEmpty()) << "a daemon that ignores quit is killed";
}

TEST_F(Share, StartsANewDaemonWhereTheOldOneWasKilled) {
  const auto first = begin({"--share", "30%", "--device", "0"}, kUntilGo);
  ASSERT_TRUE(comes("job1"));
  for (const pid_t pid : daemons()) ::kill(pid, SIGKILL);
  EXPECT_EQ(run({"--share", "30%", "--device", "0"}, kLimits).exit.status, 0);
  folder_.write("go", "");
  EXPECT_EQ(first->finish(kPatience_s).exit.status, 0);
}

TEST_F(Share, NoneIsStoppedUnderAnotherWhoeverComesAndGoes) {
  const char* script = "d=$CUDA_MPS_PIPE_DIRECTORY/pid; kill -0 $(cat $d) && sleep 0.05 && kill -0 $(cat $d)";
  std::vector<std::unique_ptr<RunningProgram>> programs;
  for (int i = 0; i < 16; ++i) programs.push_back(begin({"--share", "25%", "--device", std::to_string(i % 2)}, script));
  for (const auto& program : programs) {
    const Finished finished = program->finish();
    EXPECT_EQ(finished.exit.status, 0) << finished;
  }
}

TEST_F(Share, EndsThoughTheDaemonItStartedServesOthers) {
  const auto first = begin({"--share", "30%", "--device", "0"},
                           "echo >\"$OUT/job\"; while ! test -e \"$OUT/two\"; do "
                           "sleep 0.05; done");
  ASSERT_TRUE(comes("job"));
  const auto second = begin({"--share", "30%", "--device", "0"}, kUntilGo);
  ASSERT_TRUE(comes("job2"));
  folder_.write("two", "");
  EXPECT_EQ(first->finish(kPatience_s).exit.status, 0) << "the daemon is a child of its keeper, and not of its job";
  EXPECT_THAT(leases(), SizeIs(1));
  EXPECT_THAT(daemons(), Not(IsEmpty()));
  folder_.write("go", "");
  EXPECT_EQ(second->finish(kPatience_s).exit.status, 0);
}

TEST_F(Share, AJobThatRanAnotherIsNotKeptByTheDaemonOfThatOne) {
  const auto outer =
      begin({"--device", "1"}, fmt::format("'{}' run --share 30% --device 0 -- /bin/sh -c 'echo "
                                           ">\"$OUT/inner\"; while ! test -e \"$OUT/two\"; do sleep 0.05; "
                                           "done'",
                                           REMUDA_PROGRAM));
  ASSERT_TRUE(comes("inner"));
  const auto other = begin({"--share", "30%", "--device", "0"}, kUntilGo);
  ASSERT_TRUE(comes("job3"));
  folder_.write("two", "");
  EXPECT_EQ(outer->finish(kPatience_s).exit.status, 0);
  EXPECT_THAT(leases(), SizeIs(1));
  EXPECT_THAT(daemons(), Not(IsEmpty()));
  folder_.write("go", "");
  EXPECT_EQ(other->finish(kPatience_s).exit.status, 0);
}

TEST_F(Share, TakesTheFreeInstanceThatFitsTightest) {
  play(cut_machine());
  const Finished eighth = run({"--share", "12%"}, "echo $CUDA_VISIBLE_DEVICES [$CUDA_MPS_PIPE_DIRECTORY]");
  EXPECT_EQ(eighth.out, "MIG-00000001 []\n") << eighth;
  EXPECT_THAT(eighth.err, AllOf(HasSubstr("partition:1 (1g.5gb)"), HasSubstr("both limits are hard")));
  EXPECT_EQ(run({"--share", "14%"}, "echo $CUDA_VISIBLE_DEVICES").out, "MIG-00000002\n");
  EXPECT_EQ(run({"--share", "50%"}, "echo $CUDA_VISIBLE_DEVICES").out, "MIG-00000000\n");
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(Share, PlaceTellsBeforehandHowItWillBeShared) {
  const auto notes = [&](std::vector<std::string> request) {
    request.insert(request.begin(), {REMUDA_PROGRAM, "place", "--json"});
    const Finished place = tests::run(request, environment());
    return to_line(parse_json(place.out, "place").value_or(Json{})["explanation"]["notes"]);
  };
  EXPECT_THAT(notes({"--share", "30%"}), HasSubstr("through MPS"));
  EXPECT_THAT(notes({"--share", "30%", "-n", "2"}), HasSubstr("in time slices"));
  EXPECT_EQ(notes({}), "[]");
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(Share, GoesFromInstanceToInstanceAndThenToAPartOfAWholeDevice) {
  play(cut_machine());
  std::vector<std::unique_ptr<RunningProgram>> programs;
  for (int job = 1; job <= 4; ++job) {
    programs.push_back(begin({"--share", "10%"}, kUntilGo));
    ASSERT_TRUE(comes(fmt::format("job{}", job)));
  }
  folder_.write("go", "");
  std::vector<std::string> seen;
  for (const auto& program : programs) seen.push_back(program->finish(kPatience_s).out);
  EXPECT_THAT(seen, ElementsAre("MIG-00000001\n", "MIG-00000002\n", "MIG-00000000\n", "GPU-00000000 0=4096M\n"));
}

TEST_F(Share, LeavesNoDaemonWhenItsKeeperIsKilled) {
  const auto program = begin({"--share", "30%"}, kUntilGo);
  ASSERT_TRUE(comes("job1"));
  const auto keepers = children_of(program->pid());
  ASSERT_FALSE(keepers.empty());
  ::kill(keepers[0], SIGKILL);
  EXPECT_EQ(program->finish(kPatience_s).exit.status, 125);
  EXPECT_THAT(daemons(), IsEmpty());
  EXPECT_THAT(calls(), SizeIs(2)) << "it was told to quit";
}

TEST_F(Share, LeavesNothingOfADaemonWhoseStartWasCutShort) {
  folder_.write("hang", "");
  const auto program = begin({"--share", "30%"}, "true");
  ASSERT_TRUE(comes("calls"));
  for (const pid_t keeper : children_of(program->pid())) ::kill(keeper, SIGKILL);
  program->finish(kPatience_s);
  EXPECT_TRUE(eventually([&] { return leases().empty() && daemons().empty(); }, kPatience_s));
}

TEST_F(Share, LeavesTheDaemonToOthersWhenItsKeeperIsKilled) {
  const auto first = begin({"--share", "30%", "--device", "0"}, kUntilGo);
  ASSERT_TRUE(comes("job1"));
  const auto second = begin({"--share", "30%", "--device", "0"}, kUntilGo);
  ASSERT_TRUE(comes("job2"));
  ::kill(children_of(first->pid()).at(0), SIGKILL);
  EXPECT_EQ(first->finish(kPatience_s).exit.status, 125);
  EXPECT_THAT(calls(), SizeIs(1));
  EXPECT_FALSE(daemons().empty());
  folder_.write("go", "");
  EXPECT_EQ(second->finish(kPatience_s).exit.status, 0);
}

TEST_F(Share, TheNextToComeByStopsADaemonWhoseJobWasKilledWhole) {
  const auto program = begin({"--share", "30%"}, kUntilGo);
  ASSERT_TRUE(comes("job1"));
  const auto keepers = children_of(program->pid());
  ::kill(program->pid(), SIGSTOP);  // so that it cannot help
  for (const pid_t keeper : keepers) ::kill(keeper, SIGKILL);
  ::kill(program->pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return leases().empty() && daemons().empty(); }, kPatience_s));
}

}  // namespace
}  // namespace remuda::tests::nvml
