// `remuda wait`, `show`, `history` and `usage`; jobs that are paused, begin later, or do something at their end.
#include <csignal>
#include <gmock/gmock.h>
#include <unistd.h>

#include "process/user_name.h"
#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class AfterJobs : public JobTest {
 protected:
  Json shown(const std::string& job) const {
    const auto json = parse_json(ask({"show", "--json", job}).out, "show");
    return json ? (*json)["jobs"][0] : Json();
  }
  static constexpr const char* kForever = "echo >\"$OUT/up-$REMUDA_JOB\"; sleep 1000";
};

TEST_F(AfterJobs, WaitEndsAsTheJobDoes) {
  const std::string good = detach("exit 0"), bad = detach("sleep 0.2; exit 7"), killed = detach("kill -9 $$");
  EXPECT_EQ(ask({"wait", good}).exit.status, 0);
  EXPECT_EQ(ask({"wait", bad}).exit.status, 7);
  const Finished both = ask({"wait", good, killed, bad});
  EXPECT_EQ(both.exit.status, 137) << both;
  EXPECT_THAT(both.err, HasSubstr("remuda: job 3 killed by signal 9 (Killed)\n"));
  EXPECT_EQ(ask({"wait", "99"}).exit.status, 2);
}

TEST_F(AfterJobs, WaitIsWokenByTheEndAndGivesUpAtItsTimeout) {
  const std::string job = detach(kForever);
  ASSERT_TRUE(comes("up-1"));
  const Finished late = ask({"wait", "--timeout", "0.1s", job});
  EXPECT_EQ(late.exit.status, 124);
  EXPECT_EQ(late.err, "remuda: job 1 is still running\n");
  const auto waiting = begin({"wait", job});
  EXPECT_EQ(ask({"cancel", job}).exit.status, 0);
  EXPECT_EQ(waiting->finish().exit.status, 143);
}

TEST_F(AfterJobs, WaitNoticesThatAKeeperWasKilled) {
  const std::string job = detach(kForever);
  ASSERT_TRUE(comes("up-1"));
  const auto waiting = begin({"wait", job});
  const pid_t keeper = shown(job)["keeper"]["pid"];
  EXPECT_EQ(::kill(keeper, SIGKILL), 0);
  EXPECT_EQ(waiting->finish().exit.status, 125);
}

TEST_F(AfterJobs, ShowAndHistoryKnowWhatAnEndedJobHad) {
  const std::string job = detach("exit 3", {"-n", "2", "--name", "sweep"});
  EXPECT_EQ(ask({"wait", job}).exit.status, 3);
  const Json json = shown(job);
  EXPECT_EQ(json["stage"], "failed");
  EXPECT_EQ(json["exit"], 3);
  EXPECT_EQ(json["labels"].size(), 2U);
  EXPECT_THAT(ask({"show", job}).out, AllOf(HasSubstr("state       failed\n"), HasSubstr("had         gpu:")));
  const Finished history = ask({"history", "--state", "failed", "--since", "1h"});
  EXPECT_THAT(history.out, HasSubstr("sweep: /bin/sh -c exit 3\n")) << history;
  EXPECT_EQ(ask({"history", "--user", "nobody-of-that-name"}).out,
            "No such job has ended, as far as the pool remembers\n");
  const Finished usage = ask({"usage", "--by", "device", "--json"});
  const auto rows = parse_json(usage.out, "usage");
  ASSERT_TRUE(rows) << usage;
  EXPECT_EQ((*rows)["usage"].size(), 2U) << usage;
  EXPECT_EQ(ask({"usage", "--since", "soon"}).exit.status, 2);
}

TEST_F(AfterJobs, CancelByNameSaysWhatItDid) {
  const std::string first = detach(kForever, {"--name", "sweep"}), other = detach(kForever);
  ASSERT_TRUE(comes("up-1") && comes("up-2"));
  EXPECT_EQ(ask({"cancel", "--name", "sweep"}).out, "Cancelled job: 1\n");
  EXPECT_EQ(ask({"wait", first}).exit.status, 143);
  EXPECT_EQ(shown(other)["stage"], "running");
  EXPECT_EQ(ask({"cancel", "--name", "sweep"}).out, "No such job waits or runs\n");
  EXPECT_EQ(ask({"cancel", "--user", process::user_name(static_cast<int>(::getuid()))}).out, "Cancelled job: 2\n");
  EXPECT_EQ(ask({"wait", other}).exit.status, 143);
  EXPECT_EQ(ask({"cancel"}).exit.status, 2);
}

TEST_F(AfterJobs, APausedJobStartsOnceItIsResumed) {
  const std::string full = detach(kForever, {"-n", "8"}), paused = detach("exit 0"), next = detach("exit 0");
  ASSERT_TRUE(comes("up-1") && comes_to_wait(2));
  EXPECT_EQ(ask({"pause", paused}).exit.status, 0);
  EXPECT_EQ(ask({"cancel", full}).exit.status, 0);
  EXPECT_EQ(ask({"wait", next}).exit.status, 0);
  EXPECT_EQ(shown(paused)["stage"], "paused");
  EXPECT_THAT(ask({"why", paused}).out, HasSubstr("it is paused, until `remuda resume 2`"));
  EXPECT_EQ(ask({"resume", paused}).exit.status, 0);
  EXPECT_EQ(ask({"wait", paused}).exit.status, 0);
}

TEST_F(AfterJobs, ReprioritizeChangesWhoIsNext) {
  const std::string full = detach(kForever, {"-n", "8"}), first = detach("echo first >>\"$OUT/order\"", {"-n", "8"}),
                    second = detach("echo second >>\"$OUT/order\"", {"-n", "8"});
  ASSERT_TRUE(comes("up-1") && comes_to_wait(2));
  EXPECT_EQ(ask({"reprioritize", first, "-5"}).exit.status, 0);
  EXPECT_EQ(ask({"cancel", full}).exit.status, 0);
  EXPECT_EQ(ask({"wait", first, second}).exit.status, 0);
  EXPECT_EQ(folder_.read("order"), "second\nfirst\n");
}

TEST_F(AfterJobs, BeginsNotBeforeItsTime) {
  const std::string later = detach("exit 0", {"--begin", "1s"}), never = detach("exit 0", {"--begin", "1d"});
  ASSERT_EQ(ask({"wait", later}).exit.status, 0);
  const Json json = shown(later);
  EXPECT_GE(json["started_s"].get<double>(), json["begin_s"].get<double>());
  EXPECT_THAT(ask({"why", never}).out, HasSubstr("it is not to begin yet\nIt begins at "));
  EXPECT_THAT(ask({"queue"}).out, HasSubstr("begins in 2"));
  EXPECT_EQ(ask({"cancel", never}).exit.status, 0);
  EXPECT_EQ(ask({"wait", never}).exit.status, 125);
  EXPECT_EQ(ask({"run", "--begin", "soon", "--", "true"}).exit.status, 2);
}

TEST_F(AfterJobs, AfterAnyDoesNotMindAFailure) {
  const std::string bad = detach("sleep 0.3; exit 1"), next = detach("exit 0", {"--after-any", bad});
  EXPECT_EQ(ask({"wait", next}).exit.status, 0);
}

TEST_F(AfterJobs, ACommandAtTheEndKnowsHowItEnded) {
  const std::string tell = "echo \"$REMUDA_ENDED_JOB $REMUDA_ENDED_HOW $REMUDA_ENDED_STATUS\" >>\"$OUT/told\"";
  const Finished run = ask({"run", "--at-end", tell, "--", "/bin/sh", "-c", "exit 3"});
  EXPECT_EQ(run.exit.status, 3) << run;
  EXPECT_EQ(folder_.read("told"), "1 failed 3\n");
  EXPECT_EQ(detach("true", {"--array", "0-1", "--at-end", tell}), "2");
  EXPECT_TRUE(eventually([&] { return folder_.read("told") == "1 failed 3\n2 done 0\n"; }, kPatience_s))
      << folder_.read("told");
  const Finished wrong = ask({"run", "--at-end", "exit 4", "--", "true"});
  EXPECT_EQ(wrong.exit.status, 0);
  EXPECT_THAT(wrong.err, HasSubstr("--at-end: the command exited with status 4"));
}

TEST_F(AfterJobs, ACommandAtTheEndRunsForAJobThatLeftTheQueue) {
  const std::string full = detach(kForever, {"-n", "8"});
  ASSERT_TRUE(comes("up-1"));
  const std::string job = detach("true", {"--at-end", "echo \"$REMUDA_ENDED_HOW\" >\"$OUT/told\""});
  ASSERT_TRUE(comes_to_wait(1));
  EXPECT_EQ(ask({"cancel", job, full}).exit.status, 0);
  EXPECT_TRUE(comes("told"));
  EXPECT_EQ(folder_.read("told"), "cancelled\n");
}

}  // namespace
}  // namespace remuda::tests
