// Two pools of one live machine, as of two users who do not share a pool: a card is granted in only one of them at a
// time.
#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "process/user_name.h"
#include "tests/nvml/live_job.h"

namespace remuda::tests::nvml {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class TwoPools : public LiveJobTest {
 protected:
  process::Environment others_environment() const {
    process::Environment environment = this->environment();
    std::erase_if(environment, [](const auto& one) { return one.first == "XDG_STATE_HOME"; });
    environment.emplace_back("XDG_STATE_HOME", folder_.path("other"));
    return environment;
  }

  /// In the pool of another user.
  Finished ask_other(const std::vector<std::string>& arguments) const {
    return tests::run(line(arguments), others_environment());
  }
  std::unique_ptr<RunningProgram> begin_other(const std::vector<std::string>& arguments) const {
    return std::make_unique<RunningProgram>(line(arguments), others_environment());
  }
  /// Whether a job that may not wait gets this many devices there.
  int other_gets(int devices) const {
    return ask_other({"run", "-n", std::to_string(devices), "--no-wait", "--", "true"}).exit.status;
  }
  static pid_t keeper_of(const RunningProgram& front) { return children_of(front.pid()).at(0); }
};

TEST_F(TwoPools, NeverGrantOneCard) {
  const auto job = begin({"run", "--", "/bin/sh", "-c", "echo $$ >\"$OUT/job\"; exec sleep 1000"});
  pid_in("job");
  const std::string holder = fmt::format("{} (a job of another pool, process {})",
                                         process::user_name(static_cast<int>(::getuid())), keeper_of(*job));
  const Finished refused = ask_other({"run", "-n", "8", "--no-wait", "--", "true"});
  EXPECT_EQ(refused.exit.status, 4) << refused;
  EXPECT_THAT(refused.err, HasSubstr("is held by " + holder)) << refused;
  EXPECT_THAT(ask_other({"ps"}).out, AllOf(HasSubstr(holder), HasSubstr("no lease")));
  EXPECT_THAT(ask_other({"run", "-n", "8", "--dry-run", "--", "true"}).err, HasSubstr("is held by " + holder));
  EXPECT_EQ(other_gets(7), 0);
  EXPECT_THAT(ask({"ps"}).out, Not(HasSubstr("another pool"))) << "a pool knows its own jobs by their leases";

  const auto waiter = begin_other({"run", "-n", "8", "--", "echo", "all"});
  ASSERT_TRUE(eventually(
      [&] { return parse_json(ask_other({"queue", "--json"}).out, "queue").value_or(Json{})["waiting"].size() == 1; },
      kPatience_s));
  job->signal(SIGTERM);
  const Finished finished = waiter->finish();
  EXPECT_EQ(finished.out, "all\n") << finished;
}

TEST_F(TwoPools, SeeACardHeldUntilTheLastProcessOfItsJobIsGone) {
  const auto job = begin({"run", "-n", "8", "--", "/bin/sh", "-c", "echo $$ >\"$OUT/job\"; exec sleep 1000"});
  const pid_t pid = pid_in("job"), keeping = keeper_of(*job);
  ASSERT_EQ(other_gets(1), 4);
  job->signal(SIGSTOP);  // stops the front, which would end the job with the keeper
  ::kill(pid, SIGSTOP);  // so that it does not die with its parent before that is checked
  ::kill(keeping, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !is_running(keeping); }, kPatience_s));
  job->signal(SIGKILL);
  ::kill(pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return other_gets(8) == 0; }, kPatience_s)) << "they are not held any more";
}

TEST_F(TwoPools, SeeACardHeldWhileAnyPartOfItIs) {
  const std::vector<std::string> half{"run", "--share", "50%", "--device", "gpu:0", "--", "/bin/sh", "-c"};
  std::vector<std::string> first_line = half, second_line = half;
  first_line.emplace_back("echo $$ >\"$OUT/first\"; exec sleep 1000");
  second_line.emplace_back("echo $$ >\"$OUT/second\"; exec sleep 1000");
  const auto first = begin(first_line);
  pid_in("first");
  const auto second = begin(second_line);
  pid_in("second");
  const std::vector<std::string> theirs{"run", "--device", "gpu:0", "--no-wait", "--", "true"};
  EXPECT_EQ(ask_other(theirs).exit.status, 4);
  first->signal(SIGTERM);
  first->finish();
  EXPECT_EQ(ask_other(theirs).exit.status, 4) << "half of it is held still";
  second->signal(SIGTERM);
  second->finish();
  EXPECT_EQ(ask_other(theirs).exit.status, 0);
}

TEST_F(TwoPools, ThatAskAtTheSameTimeGetTheMachineInTurn) {
  const std::string script = "mkdir \"$OUT/taken\" && sleep 0.1 && rmdir \"$OUT/taken\"";
  std::vector<std::unique_ptr<RunningProgram>> jobs;
  for (int i = 0; i < 3; ++i) {
    jobs.push_back(begin({"run", "-n", "8", "--", "/bin/sh", "-c", script}));
    jobs.push_back(begin_other({"run", "-n", "8", "--", "/bin/sh", "-c", script}));
  }
  for (const auto& job : jobs) {
    const Finished finished = job->finish(2 * kPatience_s);
    EXPECT_EQ(finished.exit.status, 0) << finished;
  }
}

TEST_F(TwoPools, OfARecordedMachineHaveNothingToDoWithTheLiveOne) {
  const auto job = begin({"run", "-n", "8", "--", "/bin/sh", "-c", "echo $$ >\"$OUT/job\"; exec sleep 1000"});
  pid_in("job");
  const std::string recording = folder_.path("machine.json");
  EXPECT_EQ(ask_other({"run", "--machine", recording, "-n", "8", "--no-wait", "--", "true"}).exit.status, 0);
  job->signal(SIGTERM);
  job->finish();
}

}  // namespace
}  // namespace remuda::tests::nvml
