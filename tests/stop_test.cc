// How a job is asked to end, whatever process groups it has made, and what happens to processes that it leaves behind.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "process/stat.h"
#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::HasSubstr;

/// Writes into the file NAME that it runs, and that it has been asked to end.
std::string listener(const std::string& name, const std::string& signal = "TERM") {
  return "trap 'echo heard >\"$OUT/" + name + "-heard\"; exit 75' " + signal + "; echo $$ >\"$OUT/" + name +
         "\"; while :; do sleep 0.05; done";
}

class Stop : public JobTest {};

TEST_F(Stop, ReachesWhatTimeoutRuns) {
  const auto job = begin({"run", "--grace", "1h", "--", "timeout", "1000", "/bin/sh", "-c", listener("job")});
  ASSERT_TRUE(comes("job"));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  EXPECT_TRUE(comes("job-heard"));
  const Finished finished = job->finish(kPatience_s);
  EXPECT_FALSE(finished.timed_out) << finished;
}

TEST_F(Stop, ReachesWhatLeftTheGroupAtHalfTheGraceTime) {
  const auto job =
      begin({"run", "--grace", "4", "--", "/bin/sh", "-c",
             "trap : TERM; setsid /bin/sh -c " + shell_word(listener("other")) + " & while :; do sleep 0.05; done"});
  ASSERT_TRUE(comes("other"));
  job->signal(SIGTERM);
  EXPECT_TRUE(comes("other-heard"));
  EXPECT_EQ(job->finish(kPatience_s).exit.status, 128 + SIGKILL);
}

TEST_F(Stop, ReachesAShellThatIsItsOwnGroupAsAnInteractiveOneIs) {
  const auto job = begin(
      {"hold", "--", "/bin/sh", "-c", "sleep 0.5; exec setsid /bin/sh -c " + shell_word(listener("shell", "HUP"))});
  ASSERT_TRUE(comes("shell"));
  EXPECT_EQ(ask({"release", "1"}).exit.status, 0);
  const Finished finished = job->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 75) << finished;
  EXPECT_TRUE(folder_.has("shell-heard"));
}

TEST_F(Stop, OfTheFrontOfADetachedArrayEndsNothing) {
  const std::string array = detach(
      "echo $PPID >\"$OUT/keeper$REMUDA_ARRAY_INDEX\"; until test -e \"$OUT/go\"; do sleep 0.05; done; "
      "echo $REMUDA_ARRAY_INDEX >>\"$OUT/ran\"",
      {"--array", "0-2%1"});
  const auto parent_of = [](pid_t pid) {
    const auto stat = process::process_stat(pid);
    return stat ? stat->parent : 0;
  };
  const pid_t front = parent_of(parent_of(pid_in("keeper0")));
  ASSERT_GT(front, 1);
  ASSERT_EQ(::kill(front, SIGSTOP), 0);
  folder_.write("go", "");
  ASSERT_TRUE(comes("ran"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // index 0 ends, and what it was a group with
  EXPECT_EQ(::kill(front, SIGCONT), 0);
  EXPECT_TRUE(eventually([&] { return folder_.read("ran") == "0\n1\n2\n"; }, kPatience_s)) << folder_.read("ran");
  EXPECT_TRUE(eventually([&] { return ask({"why", array}).out.find(": 3 done") != std::string::npos; }, kPatience_s))
      << ask({"why", array});
}

TEST_F(Stop, ReachesAKeeperThatWasStopped) {
  const auto job = begin({"run", "--", "/bin/sh", "-c", listener("job")});
  const auto keeper = process::process_stat(pid_in("job"));
  ASSERT_TRUE(keeper);
  ::kill(keeper->parent, SIGSTOP);
  job->signal(SIGTERM);
  EXPECT_FALSE(job->finish(kPatience_s).timed_out);
  EXPECT_TRUE(folder_.has("job-heard"));
}

TEST_F(Stop, CancelReachesAKeeperThatWasStopped) {
  const auto job = begin({"run", "--", "/bin/sh", "-c", listener("job")});
  const auto keeper = process::process_stat(pid_in("job"));
  ASSERT_TRUE(keeper);
  ::kill(keeper->parent, SIGSTOP);
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  EXPECT_FALSE(job->finish(kPatience_s).timed_out);
  EXPECT_TRUE(folder_.has("job-heard"));
}

TEST_F(Stop, CountsRestartsWithinOneTimeLimit) {
  const auto job = begin({"run", "--time-limit", "4", "--restart", "1000", "--", "/bin/sh", "-c",
                          "echo x >>\"$OUT/starts\"; sleep 2.5; exit 5"});
  const Finished finished = job->finish(kPatience_s);
  EXPECT_THAT(finished.err, HasSubstr("reached its time limit of 4 s")) << finished;
}

TEST_F(Stop, TakesNoDescriptorsOfItsCallerIntoTheBackground) {
  std::string script =
      "mkfifo \"$OUT/pipe\"; { cat <\"$OUT/pipe\" >/dev/null; echo end >\"$OUT/end\"; } & exec 7>\"$OUT/pipe\"; ";
  for (const std::string& word : line({"run", "-d", "--", "/bin/sh", "-c", listener("job")}))
    script += shell_word(word) + " ";
  const Finished caller = tests::run({"/bin/sh", "-c", script + "; exec 7>&-; wait"}, environment());
  EXPECT_FALSE(caller.timed_out) << "the pipe is open in the background";
  EXPECT_TRUE(comes("job"));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
}

constexpr const char* kLeavesOneBehind = "(setsid sleep 1000 & echo $! >\"$OUT/left\"); exit 3";

TEST_F(Stop, EndsWhatACommandLeftBehindAtCtrlC) {
  const auto job = begin({"run", "--grace", "1h", "--", "/bin/sh", "-c", kLeavesOneBehind});
  const pid_t left = pid_in("left");
  ASSERT_TRUE(eventually([&] { return job->err().find("still holds") != std::string::npos; }, kPatience_s));
  EXPECT_THAT(job->err(), HasSubstr("remuda cancel 1 ends it")) << "there is no terminal";
  ::kill(job->pid(), SIGINT);
  const Finished finished = job->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 3) << finished;
  EXPECT_FALSE(is_running(left));
}

TEST_F(Stop, KillsWhatIsLeftAndDeafAtTheSecondCtrlC) {
  const std::string deaf = "(setsid /bin/sh -c 'trap : TERM; echo $$ >\"$OUT/left\"; while :; do sleep 0.05; done' &)";
  const std::string command = deaf + "; until test -e \"$OUT/left\"; do sleep 0.05; done";
  const auto job = begin({"run", "--grace", "1h", "--", "/bin/sh", "-c", command});
  const pid_t left = pid_in("left");
  ASSERT_TRUE(eventually([&] { return job->err().find("still hold") != std::string::npos; }, kPatience_s));
  ::kill(job->pid(), SIGINT);
  eventually([] { return false; }, 1.1);  // within a second both signals would count as one
  ::kill(job->pid(), SIGINT);
  const Finished finished = job->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_FALSE(is_running(left));
}

/// A program at a terminal of its own.
class TerminalSession {
 public:
  TerminalSession(const std::vector<std::string>& line, const process::Environment& environment) {
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::setenv("TERM", "xterm", 1);
    std::vector<char*> argv;
    for (const std::string& word : line) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ~TerminalSession() {
    close();
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  void type(const std::string& text) const { (void)write_all(terminal_, text, "a terminal"); }
  bool shows(const std::string& text) {
    return eventually(
        [&] {
          pollfd polled{terminal_, POLLIN, 0};
          char bytes[4096];
          while (::poll(&polled, 1, 0) == 1) {
            const ssize_t got = ::read(terminal_, bytes, sizeof bytes);
            if (got <= 0) break;
            shown_.append(bytes, static_cast<size_t>(got));
          }
          return shown_.find(text) != std::string::npos;
        },
        kPatience_s);
  }
  void close() {
    if (terminal_ >= 0) ::close(std::exchange(terminal_, -1));
  }
  /// The exit status; -1 where it does not end.
  int finish() {
    int status = -1;
    const bool has_ended = eventually(
        [&] {
          shows("");  // its last output must be read
          return ::waitpid(pid_, &status, WNOHANG) == pid_;
        },
        kPatience_s);
    if (!has_ended) return -1;
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  const std::string& shown() const { return shown_; }

 private:
  int terminal_ = -1;
  pid_t pid_ = 0;
  std::string shown_;
};

class AtATerminal : public Stop {};

TEST_F(AtATerminal, SaysWhichDevicesAndHowTheyAreJoined) {
  TerminalSession run(line({"run", "-n", "2", "--", "true"}), environment());
  EXPECT_EQ(run.finish(), 0) << run.shown();
  EXPECT_THAT(run.shown(), testing::ContainsRegex("remuda: job 1: gpu:[0-7], gpu:[0-7] .NV[0-9]+, [0-9]+ GB/s."));
  TerminalSession hold(line({"hold", "--", "true"}), environment());
  EXPECT_EQ(hold.finish(), 0) << hold.shown();
  EXPECT_THAT(hold.shown(), HasSubstr("the end of this shell gives back what it holds"));
  TerminalSession quiet(line({"run", "-q", "--", "echo", "only this"}), environment());
  EXPECT_EQ(quiet.finish(), 0);
  EXPECT_EQ(quiet.shown(), "only this\r\n");
}

TEST_F(AtATerminal, SaysHowToSeeWhatAJobInTheBackgroundWrites) {
  TerminalSession run(line({"run", "-d", "--", "true"}), environment());
  EXPECT_EQ(run.finish(), 0);
  EXPECT_THAT(run.shown(), HasSubstr("1\r\nremuda logs -f 1"));
  EXPECT_EQ(ask({"run", "-d", "--", "true"}).out, "2\n");
}

TEST_F(AtATerminal, CtrlCEndsWhatAnInteractiveShellLeftBehind) {
  TerminalSession hold(line({"hold", "--", "/bin/bash", "--norc", "-i"}), environment());
  hold.type("setsid /bin/sh -c 'echo $$ >\"$OUT/left\"; exec sleep 1000' &\n");
  const pid_t left = pid_in("left");
  hold.type("exit 3\n");
  ASSERT_TRUE(hold.shows(" ends it")) << hold.shown();
  EXPECT_THAT(hold.shown(), HasSubstr("sleep (pid " + std::to_string(left) + ") still holds gpu:"));
  hold.type("\x03");
  EXPECT_EQ(hold.finish(), 3) << hold.shown();
  EXPECT_FALSE(is_running(left));
}

TEST_F(AtATerminal, ItsClosingEndsWhatACommandLeftBehind) {
  TerminalSession run(line({"run", "--", "/bin/sh", "-c", kLeavesOneBehind}), environment());
  ASSERT_TRUE(run.shows("Ctrl-C ends it")) << run.shown();
  run.close();
  EXPECT_TRUE(comes_free());
  EXPECT_FALSE(is_running(pid_in("left")));
}

class UnreadOutput : public Stop {
 protected:
  /// Runs `script` as a job with a log on all devices; its reader does not read until there is a file "go".
  std::unique_ptr<RunningProgram> begin_unread(const std::string& script) const {
    std::string job;
    for (const std::string& word :
         line({"run", "-n", "8", "--grace", "1", "--log", folder_.path("log"), "--", "/bin/sh", "-c", script}))
      job += shell_word(word) + " ";
    const std::string reader = "{ until test -e \"$OUT/go\"; do sleep 0.05; done; wc -c >\"$OUT/count\"; }";
    return std::make_unique<RunningProgram>(std::vector<std::string>{"/bin/sh", "-c", job + "| " + reader},
                                            environment());
  }
};

TEST_F(UnreadOutput, FreesTheDevicesAtTheEndAndLosesNothing) {
  const auto program = begin_unread("head -c 100000 /dev/zero; echo >\"$OUT/written\"");
  ASSERT_TRUE(comes("written"));
  EXPECT_TRUE(comes_free());
  EXPECT_EQ(ask({"run", "-n", "8", "--no-wait", "--", "echo", "next"}).out, "next\n");
  EXPECT_EQ(folder_.read("log").size(), 100'000U);
  folder_.write("go", "");
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(folder_.read("count"), "100000\n");
}

TEST_F(UnreadOutput, KeepsNoJobFromBeingCancelled) {
  const auto program = begin_unread("echo >\"$OUT/job\"; exec cat /dev/zero");
  ASSERT_TRUE(comes("job"));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  EXPECT_TRUE(comes_free());
  program->signal(SIGINT);  // as with Ctrl-C: remuda no longer waits for the reader
  EXPECT_FALSE(program->finish(kPatience_s).timed_out);
}

}  // namespace
}  // namespace remuda::tests
