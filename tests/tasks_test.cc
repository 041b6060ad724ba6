// `remuda run --tasks`: many commands over the leased devices, one at a time on each.
#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <set>
#include <sys/stat.h>

#include "base/text.h"
#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Tasks : public JobTest {
 protected:
  std::vector<std::string> with(const std::string& tasks, std::vector<std::string> flags) const {
    folder_.write("tasks", tasks);
    flags.insert(flags.begin(), {"run", "--tasks", folder_.path("tasks")});
    return flags;
  }
  Finished run(const std::string& tasks, std::vector<std::string> flags = {}) const {
    return ask(with(tasks, std::move(flags)));
  }
  std::unique_ptr<RunningProgram> start(const std::string& tasks, std::vector<std::string> flags = {}) const {
    return begin(with(tasks, std::move(flags)));
  }
  /// The lines that tasks appended to a file.
  std::vector<std::string> lines(const std::string& file) const {
    std::vector<std::string> lines = split(folder_.read(file), '\n');
    lines.pop_back();
    return lines;
  }
};

TEST_F(Tasks, RunEachLineOnceOnOneDevice) {
  std::string tasks;
  for (int i = 0; i < 20; ++i)
    tasks += "echo $REMUDA_TASK $REMUDA_DEVICES $CUDA_VISIBLE_DEVICES [$RANK] >>\"$OUT/ran\"\n";
  const Finished finished = run(tasks, {"-n", "3"});
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_THAT(finished.err, HasSubstr("20 tasks done, 0 failed; gpu:"));
  std::set<std::string> numbers, devices;
  for (const std::string& line : lines("ran")) {
    EXPECT_THAT(line, testing::MatchesRegex("[0-9]+ gpu:[0-7] [0-7] \\[\\]"));
    numbers.insert(line.substr(0, line.find(' ')));
    devices.insert(line.substr(line.find(' ')));
  }
  EXPECT_THAT(numbers, SizeIs(20));
  EXPECT_THAT(devices, SizeIs(3));
}

TEST_F(Tasks, PutEachLineIntoACommandAsItIs) {
  const Finished finished = run("a b\n$HOME; {}\n", {"--", "printf", "<%s>\\n", "{}"});
  EXPECT_EQ(finished.out, "<a b>\n<$HOME; {}>\n") << finished;
}

TEST_F(Tasks, ReadTheirListFromStdinAndHaveNone) {
  folder_.write("list", "cat\necho one\n");
  const std::string line =
      fmt::format("'{}' run --machine '{}' -q --tasks - <'{}'", REMUDA_PROGRAM, machine().back(), folder_.path("list"));
  const Finished finished = tests::run({"/bin/sh", "-c", line}, environment());
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(finished.out, "one\n");
  EXPECT_EQ(finished.err, "");
}

TEST_F(Tasks, NeverShareADevice) {
  std::string tasks;
  for (int i = 0; i < 12; ++i)
    tasks += "mkdir \"$OUT/lock-$REMUDA_DEVICES\" || echo twice; sleep 0.05; rmdir \"$OUT/lock-$REMUDA_DEVICES\"\n";
  const Finished finished = run(tasks, {"-n", "4"});
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(finished.out, "");
}

TEST_F(Tasks, GiveMoreToTheFasterDevice) {
  std::string tasks;
  for (int i = 0; i < 16; ++i)
    tasks += "echo $REMUDA_DEVICES >>\"$OUT/ran\"; test $REMUDA_DEVICES = gpu:0 && sleep 1 || sleep 0.02\n";
  EXPECT_EQ(run(tasks, {"--device", "0,1"}).exit.status, 0);
  const auto ran = lines("ran");
  EXPECT_THAT(ran, SizeIs(16));
  EXPECT_GE(std::ranges::count(ran, "gpu:1"), 9);
}

TEST_F(Tasks, GoOnAfterAFailureAndEndWithTheFirst) {
  const Finished finished = run("exit 5\n# no task\nsleep 0.3; kill -9 $$\necho on\n", {"-n", "2"});
  EXPECT_EQ(finished.exit.status, 5) << finished;
  EXPECT_EQ(finished.out, "on\n");
  EXPECT_THAT(finished.err, HasSubstr("1 task done, 2 failed (line 1: status 5, line 3: signal 9); gpu:"));
  EXPECT_THAT(ask({"why", "1"}).out, HasSubstr("2 failed (line 1: status 5"));
}

TEST_F(Tasks, EndWithTheFirstFailureWhenAsked) {
  const Finished finished =
      run("while ! test -e \"$OUT/up\"; do sleep 0.02; done; exit 6\necho >\"$OUT/up\"; sleep 1000\necho never\n",
          {"-n", "2", "--fail-fast"});
  EXPECT_EQ(finished.exit.status, 6) << finished;
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("1 failed (line 1: status 6), 1 stopped, 1 not started"));
}

TEST_F(Tasks, TryAgainWhatFailed) {
  const Finished finished =
      run("echo x >>\"$OUT/tries\"; test $(wc -l <\"$OUT/tries\") -ge 3\ntrue\n", {"--restart", "2"});
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_THAT(finished.err, HasSubstr("2 tasks done, 0 failed"));
  EXPECT_EQ(run("exit 9\n", {"--restart", "2", "--restart-on", "8"}).exit.status, 9);
}

TEST_F(Tasks, TellOfACommandThatIsNotThereOnce) {
  const Finished finished = run("a\nb\nc\n", {"--", "/no/such/program", "{}"});
  EXPECT_EQ(finished.exit.status, 127) << finished;
  EXPECT_THAT(finished.err, AllOf(HasSubstr("line 1: there is no program"), HasSubstr("3 failed")));
  EXPECT_THAT(finished.err, testing::Not(HasSubstr("line 2: there is")));
}

TEST_F(Tasks, StartNothingMoreOnceToldToStop) {
  std::string tasks = "echo >\"$OUT/up\"; trap 'exit 0' TERM; while :; do sleep 0.05; done\n";
  for (int i = 0; i < 5; ++i) tasks += "echo x >>\"$OUT/others\"\n";
  const auto program = start(tasks);
  ASSERT_TRUE(comes("up"));
  program->signal(SIGTERM);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 128 + SIGTERM) << finished;
  EXPECT_FALSE(folder_.has("others"));
  EXPECT_THAT(finished.err, HasSubstr("was told to stop; 1 task done, 0 failed, 5 not started"));
}

TEST_F(Tasks, StartNothingMoreOnceInterrupted) {
  const auto program = start("echo >\"$OUT/up\"; sleep 1000\necho x >>\"$OUT/others\"\n");
  ASSERT_TRUE(comes("up"));
  program->signal(SIGINT);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 128 + SIGINT) << finished;
  EXPECT_FALSE(folder_.has("others"));
}

TEST_F(Tasks, GoOnWhereTheyWereWhenTheirJobIsQueuedAgain) {
  const auto program = start(
      "echo one >>\"$OUT/ran\"\ntest -e \"$OUT/up\" && echo two >>\"$OUT/ran\" && exit 0; echo >\"$OUT/up\"; sleep "
      "1000\n"
      "echo three >>\"$OUT/ran\"\n",
      {"--requeue"});
  ASSERT_TRUE(comes("up"));
  ::kill(program->pid(), SIGTERM);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_THAT(lines("ran"), testing::ElementsAre("one", "two", "three"));
}

TEST_F(Tasks, AreCancelledWithTheirJob) {
  const auto program = start("echo >\"$OUT/up\"; sleep 1000\necho never\n");
  ASSERT_TRUE(comes("up"));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 128 + SIGTERM) << finished;
  EXPECT_EQ(finished.out, "");
}

TEST_F(Tasks, EndAtTheTimeLimit) {
  const Finished finished =
      run("trap '' TERM; while :; do sleep 0.05; done\necho never\n", {"--time-limit", "2s", "--grace", "0.2s"});
  EXPECT_EQ(finished.exit.status, 128 + SIGKILL) << finished;
  EXPECT_EQ(finished.out, "");
}

TEST_F(Tasks, DieWithTheirFront) {
  const auto program =
      start("setsid sleep 1000 & echo $$ >\"$OUT/job\"; wait\nsleep 1000\necho never >\"$OUT/late\"\n");
  const pid_t job = pid_in("job");
  ::kill(program->pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return !is_running(job); }, kPatience_s));
  EXPECT_TRUE(comes_free());
  EXPECT_FALSE(folder_.has("late"));
}

TEST_F(Tasks, DieWithTheirKeeper) {
  const auto program = start("setsid sleep 1000 & echo $$ >\"$OUT/job\"; wait\necho never >\"$OUT/late\"\n");
  const pid_t job = pid_in("job");
  const auto keepers = children_of(program->pid());
  ASSERT_THAT(keepers, SizeIs(1));
  ::kill(keepers[0], SIGKILL);
  EXPECT_EQ(program->finish(kPatience_s).exit.status, 125);
  EXPECT_FALSE(is_running(job));
  EXPECT_FALSE(folder_.has("late"));
}

TEST_F(Tasks, AreTidiedUpByTheNextWhenFrontAndKeeperAreKilled) {
  const auto program = start("true\nsetsid sleep 1000 & echo $$ >\"$OUT/job\"; wait\n", {"--device", "0"});
  pid_in("job");
  const auto keepers = children_of(program->pid());
  ::kill(program->pid(), SIGSTOP);  // so that it cannot help
  for (const pid_t keeper : keepers) ::kill(keeper, SIGKILL);
  ::kill(program->pid(), SIGKILL);
  EXPECT_EQ(ask({"run", "-n", "8", "--", "echo", "mine"}).out, "mine\n");
}

TEST_F(Tasks, WriteWholeLinesAndALog) {
  std::string tasks;
  for (int i = 0; i < 8; ++i) tasks += "for i in 1 2 3; do printf 'one '; printf 'line\\n'; done\n";
  const Finished finished = run(tasks, {"-n", "4", "-q", "--log", folder_.path("log")});
  const auto out = split(finished.out, '\n');
  EXPECT_EQ(std::ranges::count(out, "one line"), 24) << finished;
  EXPECT_EQ(folder_.read("log"), finished.out);
}

TEST_F(Tasks, SayWhatIsWrongInOneSentence) {
  const auto refused = [&](const std::string& tasks, std::vector<std::string> flags = {}) {
    const Finished finished = run(tasks, std::move(flags));
    EXPECT_EQ(finished.exit.status, 2) << finished;
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished;
    return finished.err;
  };
  EXPECT_THAT(refused("# nothing\n"), HasSubstr("no task in"));
  EXPECT_THAT(refused("true\n\xff\n"), HasSubstr("line 2 of"));
  EXPECT_THAT(refused(std::string((16 << 20) + 1, 'x')), HasSubstr("larger than 16.0 MiB"));
  EXPECT_THAT(refused("true\n", {"--each"}), HasSubstr("do not go together"));
  EXPECT_THAT(ask({"run", "--fail-fast", "--", "true"}).err, HasSubstr("--fail-fast is for --tasks"));
  ASSERT_EQ(::mkfifo(folder_.path("pipe").c_str(), 0600), 0);
  for (const char* name : {"pipe", "none", ""})
    EXPECT_THAT(ask({"run", "--tasks", folder_.path(name)}).err, HasSubstr("cannot read")) << name;
}

TEST_F(Tasks, CanBeTriedOnly) {
  EXPECT_EQ(run("true\n", {"-n", "2", "--dry-run"}).exit.status, 0);
  EXPECT_EQ(run("true\n", {"-n", "9"}).exit.status, 3);
  const auto all = begin({"run", "-n", "8", "--", "/bin/sh", "-c", "echo >\"$OUT/up\"; sleep 1000"});
  ASSERT_TRUE(comes("up"));
  EXPECT_EQ(run("true\n", {"--no-wait"}).exit.status, 4);
  all->signal(SIGTERM);
  all->finish(kPatience_s);
}

}  // namespace
}  // namespace remuda::tests
