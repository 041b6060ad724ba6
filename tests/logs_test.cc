// `remuda run -d` and `remuda logs`: jobs in the background, and their output.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Logs : public JobTest {
 protected:
  std::string log(const std::string& job, std::vector<std::string> flags = {}) const {
    flags.insert(flags.begin(), "logs");
    flags.push_back(job);
    const Finished finished = ask(flags);
    EXPECT_EQ(finished.exit.status, 0) << finished;
    return finished.out;
  }
  bool ends(const std::string& job) const {
    return eventually([&] { return ask({"why", job}).out.find("ended") != std::string::npos; }, kPatience_s);
  }
  std::filesystem::path log_file() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path("state")))
      if (entry.path().extension() == ".log") return entry.path();
    return {};
  }
};

TEST_F(Logs, KeepWhatAJobInTheBackgroundWrote) {
  const std::string job = detach("echo out; echo err >&2; cat; test -t 0 || echo no terminal");
  EXPECT_EQ(job, "1");
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(log(job), "out\nerr\nno terminal\n");
  EXPECT_EQ(log(job, {"-n", "1"}), "no terminal\n");
  struct stat info{};
  ASSERT_EQ(::stat(log_file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat(log_file().parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST_F(Logs, GoToTheFileThatWasAskedFor) {
  const std::string job = detach("echo one", {"--log", folder_.path("mine")});
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(folder_.read("mine"), "one\n");
  EXPECT_EQ(log(job), "one\n");
  EXPECT_TRUE(log_file().empty());
}

TEST_F(Logs, BelongToJobsOnATerminalWhenAskedFor) {
  EXPECT_EQ(ask({"run", "--log", folder_.path("mine"), "--", "echo", "one"}).out, "one\n");
  EXPECT_EQ(log("1"), "one\n");
}

TEST_F(Logs, GoOnInASessionOfTheirOwn) {
  const std::string job = detach("echo $$ >\"$OUT/job\"; while ! test -e \"$OUT/go\"; do sleep 0.05; done; echo ran");
  const pid_t pid = pid_in("job");
  EXPECT_NE(::getsid(pid), ::getsid(0));
  folder_.write("go", "");
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(log(job), "ran\n");
}

TEST_F(Logs, AreFollowedUntilTheJobHasEnded) {
  const std::string job =
      detach("echo one; echo >\"$OUT/up\"; while ! test -e \"$OUT/go\"; do sleep 0.05; done; echo two; exit 3");
  const auto follower = begin({"logs", "-f", job});
  EXPECT_TRUE(eventually([&] { return follower->out() == "one\n"; }, kPatience_s));
  folder_.write("go", "");
  const Finished finished = follower->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(finished.out, "one\ntwo\n");
}

TEST_F(Logs, AreFollowedFromBeforeTheJobStarts) {
  const auto all = begin({"run", "-n", "8", "--", "/bin/sh", "-c", "echo >\"$OUT/up\"; sleep 1000"});
  ASSERT_TRUE(comes("up"));
  const std::string job = detach("echo late");
  const auto follower = begin({"logs", "-f", job});
  EXPECT_EQ(log(job), "");
  all->signal(SIGTERM);
  all->finish(kPatience_s);
  EXPECT_EQ(follower->finish(kPatience_s).out, "late\n");
}

TEST_F(Logs, EndForAFollowerWhenTheJobIsKilledWithAllItsKeepers) {
  const std::string job = detach("echo one; echo $PPID >\"$OUT/keeper\"; sleep 1000");
  const pid_t keeper = pid_in("keeper");
  const auto follower = begin({"logs", "-f", job});
  EXPECT_TRUE(eventually([&] { return follower->out() == "one\n"; }, kPatience_s));
  ::kill(keeper, SIGKILL);
  EXPECT_EQ(follower->finish(kPatience_s).exit.status, 0);
  EXPECT_TRUE(comes_free());
}

TEST_F(Logs, EndWithTheirFront) {
  detach("setsid sleep 1000 & echo $PPID >\"$OUT/keeper\"; wait");
  const pid_t keeper = pid_in("keeper");
  pid_t front = 0;
  std::string stat = read_text(fmt::format("/proc/{}/stat", keeper)).value_or("");
  ASSERT_EQ(std::sscanf(stat.c_str() + stat.rfind(')') + 4, "%d", &front), 1);
  ::kill(front, SIGKILL);
  EXPECT_TRUE(comes_free());
}

TEST_F(Logs, SurviveThatTheyAreCutShortOrRemoved) {
  const std::string job = detach("echo one; while ! test -e \"$OUT/go\"; do sleep 0.05; done; echo 2");
  EXPECT_TRUE(eventually([&] { return log(job) == "one\n"; }, kPatience_s));
  const auto follower = begin({"logs", "-f", job});
  EXPECT_TRUE(eventually([&] { return follower->out() == "one\n"; }, kPatience_s));
  std::filesystem::resize_file(log_file(), 0);
  folder_.write("go", "");
  EXPECT_EQ(follower->finish(kPatience_s).out, "one\n2\n");
  std::filesystem::remove(log_file());
  const Finished gone = ask({"logs", job});
  EXPECT_EQ(gone.exit.status, 1) << gone;
  EXPECT_THAT(gone.err, HasSubstr("not there any more"));
}

TEST_F(Logs, AreMissedInOneSentence) {
  EXPECT_THAT(ask({"logs", "7"}).err, HasSubstr("there is no job 7"));
  EXPECT_EQ(ask({"logs", "7"}).exit.status, 2);
  EXPECT_EQ(ask({"run", "--", "true"}).exit.status, 0);
  const Finished none = ask({"logs", "1"});
  EXPECT_EQ(none.exit.status, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("has no log"), HasSubstr("--log FILE")));
}

TEST_F(Logs, AreNotBegunForWhatCannotRun) {
  EXPECT_EQ(ask({"run", "-d", "-n", "9", "--", "true"}).exit.status, 3);
  EXPECT_EQ(ask({"run", "-d", "--after", "9", "--", "true"}).exit.status, 2);
  const Finished unwritable = ask({"run", "-d", "--log", folder_.path("none/log"), "--", "true"});
  EXPECT_EQ(unwritable.exit.status, 2) << "at once, not when its turn comes: " << unwritable;
  EXPECT_THAT(unwritable.err, HasSubstr("cannot write"));
  const std::string all = detach("echo >\"$OUT/up\"; sleep 1000", {"-n", "8"});
  ASSERT_TRUE(comes("up"));
  const Finished busy = ask({"run", "-d", "--no-wait", "--", "true"});
  EXPECT_EQ(busy.exit.status, 4) << busy;
  EXPECT_EQ(busy.out, "");
  EXPECT_EQ(ask({"cancel", all}).exit.status, 0);
}

TEST_F(Logs, LeaveNothingOfTheirCallerOpen) {
  const std::string line =
      fmt::format("echo $('{}' run --machine '{}' -d -- sleep 1000)", REMUDA_PROGRAM, machine().back());
  const Finished finished = tests::run({"/bin/sh", "-c", line}, environment());
  EXPECT_EQ(finished.out, "1\n") << "the shell waits for all processes that hold the pipe: " << finished;
  EXPECT_FALSE(finished.timed_out);
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
}

TEST_F(Logs, HoldTheTasksOfAJobToo) {
  folder_.write("tasks", "echo one\necho two\n");
  const Finished finished = ask({"run", "-d", "--tasks", folder_.path("tasks")});
  EXPECT_EQ(finished.out, "1\n") << finished;
  ASSERT_TRUE(ends("1"));
  EXPECT_EQ(log("1"), "one\ntwo\n");
}

}  // namespace
}  // namespace remuda::tests
