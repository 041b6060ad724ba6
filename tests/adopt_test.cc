// `remuda adopt PID`: a lease for a process that runs already.
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/file.h"
#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kStays = "echo $$ >\"$OUT/pid\"; trap 'exit 3' TERM; while :; do sleep 0.05; done";

class Adopt : public JobTest {
 protected:
  /// A process that remuda has not started.
  std::unique_ptr<RunningProgram> stranger(const std::string& script = kStays) {
    auto program = std::make_unique<RunningProgram>(std::vector<std::string>{"/bin/sh", "-c", script}, environment());
    pid_in("pid");
    return program;
  }
  Finished adopt(const RunningProgram& program, std::vector<std::string> flags = {}) const {
    flags.insert(flags.begin(), {"adopt", std::to_string(program.pid())});
    return ask(flags);
  }
  std::string why(const std::string& job) const { return ask({"why", job}).out; }
};

TEST_F(Adopt, TheLeaseEndsWithTheProcess) {
  const auto program = stranger();
  const Finished adopted = adopt(*program, {"-n", "2"});
  EXPECT_EQ(adopted.exit.status, 0) << adopted;
  EXPECT_THAT(adopted.out,
              HasSubstr(fmt::format("Job 1 holds gpu:0, gpu:3 until process {} has ended", program->pid())));
  EXPECT_THAT(adopted.out, HasSubstr("Its environment stays as it is"));
  const Json held = leases();
  ASSERT_THAT(held, SizeIs(2));
  EXPECT_EQ(held[0]["command"][0], "/bin/sh");
  const std::string cgroup = held[0].value("cgroup", "");
  if (!cgroup.empty()) {
    EXPECT_THAT(read_text(cgroup + "/cgroup.procs").value_or(""), HasSubstr(fmt::format("{}\n", program->pid())));
  } else {
    EXPECT_THAT(adopted.out, HasSubstr("Nothing holds what it starts together"));
  }
  program->signal(SIGKILL);
  EXPECT_TRUE(comes_free());
  EXPECT_THAT(why("1"), HasSubstr("its process has ended; how, only its parent was told"));
  EXPECT_EQ(ask({"wait", "1"}).exit.status, 125) << "nobody here knows that it ended well";
  EXPECT_THAT(ask({"run", "--after", "1", "--", "true"}).err,
              HasSubstr("job 1, which should end well before, did not"));
  EXPECT_TRUE(eventually([&] { return cgroup.empty() || !std::filesystem::exists(cgroup); }, kPatience_s));
}

TEST_F(Adopt, WhatItHasStartedKeepsTheDevicesWhereACgroupHoldsIt) {
  const auto program = stranger("setsid sleep 1000 & echo $! >\"$OUT/child\"; echo $$ >\"$OUT/pid\"; wait");
  const pid_t child = pid_in("child");
  ASSERT_EQ(adopt(*program).exit.status, 0);
  if (!leases()[0].contains("cgroup")) {
    ::kill(child, SIGKILL);
    GTEST_SKIP() << "this user may make no cgroup here";
  }
  program->signal(SIGKILL);
  program->finish();
  EXPECT_TRUE(is_running(child));
  EXPECT_THAT(leases(), SizeIs(1));
  ::kill(child, SIGKILL);
  EXPECT_TRUE(comes_free());
}

TEST_F(Adopt, JobsThatItHasStartedStayOutside) {
  std::string words;
  for (const std::string& word : line({"run", "-n", "8", "--", "true"})) words += shell_word(word) + " ";
  const auto first = begin({"run", "--", "sh", "-c", "echo >\"$OUT/full\"; exec sleep 1000"});
  ASSERT_TRUE(comes("full"));
  const auto program = stranger(fmt::format("{}& {}", words, kStays));
  ASSERT_TRUE(comes_to_wait(1));
  ASSERT_EQ(adopt(*program).exit.status, 0);
  const std::string cgroup = leases()[1].value("cgroup", "");
  const std::vector<pid_t> fronts = children_of(program->pid());
  ASSERT_FALSE(fronts.empty());
  const std::vector<pid_t> keepers = children_of(fronts.front());
  ASSERT_FALSE(keepers.empty());
  if (!cgroup.empty()) {
    const std::string members = "\n" + read_text(cgroup + "/cgroup.procs").value_or("");
    EXPECT_THAT(members, HasSubstr(fmt::format("\n{}\n", program->pid())));
    EXPECT_THAT(members, testing::Not(HasSubstr(fmt::format("\n{}\n", keepers.front()))));
  }
  EXPECT_EQ(ask({"cancel", "1", "2", "3"}).exit.status, 0);
  EXPECT_TRUE(comes_free());
}

TEST_F(Adopt, CancelEndsTheProcess) {
  const auto program = stranger();
  ASSERT_EQ(adopt(*program).exit.status, 0);
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  EXPECT_EQ(program->finish().exit.status, 3) << "it was asked to";
  EXPECT_TRUE(comes_free());
  EXPECT_THAT(why("1"), HasSubstr("was cancelled"));
}

TEST_F(Adopt, ATimeLimitEndsTheProcess) {
  const auto program = stranger();
  ASSERT_EQ(adopt(*program, {"--time-limit", "1s"}).exit.status, 0);
  EXPECT_EQ(program->finish().exit.status, 3) << "it was asked to";
  EXPECT_TRUE(comes_free());
  EXPECT_THAT(why("1"), HasSubstr("reached its time limit of 1 s"));
  const auto other = stranger();
  const auto full = begin({"run", "-n", "8", "--", "sh", "-c", "echo >\"$OUT/full\"; exec sleep 1000"});
  ASSERT_TRUE(comes("full"));
  EXPECT_EQ(adopt(*other, {"--no-wait"}).exit.status, 4);
  other->signal(SIGKILL);
  full->signal(SIGTERM);
  EXPECT_TRUE(comes_free());
}

TEST_F(Adopt, AProcessThatEndsWhileItWaitsLeavesTheQueue) {
  const auto first = begin({"run", "-n", "8", "--", "sh", "-c", "echo >\"$OUT/full\"; exec sleep 1000"});
  ASSERT_TRUE(comes("full"));
  const auto program = stranger();
  const auto waiter = begin({"adopt", std::to_string(program->pid())});
  ASSERT_TRUE(comes_to_wait(1));
  program->signal(SIGKILL);
  const Finished left = waiter->finish();
  EXPECT_EQ(left.exit.status, 125) << left;
  EXPECT_THAT(left.err, HasSubstr("the process has ended"));
  EXPECT_TRUE(eventually([&] { return waiting() == 0; }, kPatience_s));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
}

TEST_F(Adopt, ItIsRefusedInOneSentence) {
  EXPECT_EQ(ask({"adopt", "4194304"}).err, "remuda: there is no process 4194304\n");
  EXPECT_EQ(ask({"adopt", "python"}).err,
            "remuda adopt: PID: Value python not in range 1 to 2147483647\nSee remuda adopt --help.\n");
  const auto job = begin({"run", "--", "sh", "-c", kStays});
  const Finished twice = ask({"adopt", std::to_string(pid_in("pid"))});
  EXPECT_EQ(twice.exit.status, 2);
  EXPECT_THAT(twice.err, HasSubstr("is a part of job 1 already"));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
}

}  // namespace
}  // namespace remuda::tests
