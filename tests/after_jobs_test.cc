// `remuda wait`, `show`, `history` and `usage`; jobs that are paused, begin later, or do something at their end.
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/env.h"
#include "process/user_name.h"
#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class AfterJobs : public JobTest {
 protected:
  Json shown(const std::string& job) const {
    const auto json = parse_json(ask({"show", "--json", job}).out, "show");
    return json ? (*json)["jobs"][0] : Json();
  }
  /// Programs of a test go before others.
  process::Environment environment() const override {
    process::Environment all = JobTest::environment();
    all.emplace_back("PATH", folder_.path("bin") + ":" + env::get(env::path).value_or(""));
    return all;
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

TEST_F(AfterJobs, WaitOfAJobAfterAFailedOneHasOneSubject) {
  const std::string bad = detach(kForever), next = detach("true", {"--after", bad});
  EXPECT_EQ(ask({"cancel", bad}).exit.status, 0);
  const Finished waited = ask({"wait", next});
  EXPECT_EQ(waited.exit.status, 125) << waited;
  EXPECT_EQ(waited.err, "remuda: job 2: job 1, which had to end well before, did not\n");
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
  const Finished none = ask({"cancel", "--name", "sweep"});
  EXPECT_EQ(none.exit.status, 2);
  EXPECT_THAT(none.err, HasSubstr(" that is called sweep waits or runs\n"));
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
  EXPECT_THAT(ask({"why", never}).out, AllOf(HasSubstr("it begins at "), HasSubstr("\nearliest    ")));
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

TEST_F(AfterJobs, WhatItWritesIsInTheLogOfTheJob) {
  const std::string job =
      detach("echo the job", {"--at-end", "echo the end of $REMUDA_ENDED_JOB; date -d @$REMUDA_ENDED_AT"});
  EXPECT_EQ(ask({"wait", job}).exit.status, 0);
  EXPECT_TRUE(eventually([&] { return ask({"logs", job}).out.find("the end of " + job + "\n") != std::string::npos; },
                         kPatience_s));
  EXPECT_THAT(ask({"logs", job}).out, StartsWith("the job\n"));
  const std::string log = folder_.path("own.log");
  const Finished run = ask({"run", "--log", log, "--at-end", "echo told", "--", "echo", "ran"});
  EXPECT_EQ(run.out, "ran\n") << run;
  EXPECT_EQ(folder_.read("own.log"), "ran\ntold\n");
}

TEST_F(AfterJobs, ACommandAtTheEndKnowsTheTimes) {
  const std::string tell =
      "echo $((REMUDA_ENDED_SUBMITTED <= REMUDA_ENDED_STARTED && REMUDA_ENDED_STARTED <= REMUDA_ENDED_AT)) >$OUT/told";
  EXPECT_EQ(ask({"run", "--at-end", tell, "--", "true"}).exit.status, 0);
  EXPECT_EQ(folder_.read("told"), "1\n");
}

/// A program that takes the place of a mail system: it keeps what it is given.
TEST_F(AfterJobs, MailSaysHowTheJobEnded) {
  folder_.write("bin/sendmail", "#!/bin/sh\necho \"$@\" >\"$OUT/arguments\"; cat >\"$OUT/letter\"\n");
  std::filesystem::permissions(folder_.path("bin/sendmail"), std::filesystem::perms(0755));
  const Finished run = ask({"run", "--name", "sweep", "--mail", "ada@example.org", "--", "/bin/sh", "-c", "exit 3"});
  EXPECT_EQ(run.exit.status, 3) << run;
  EXPECT_EQ(folder_.read("arguments"), "-i ada@example.org\n");
  EXPECT_THAT(folder_.read("letter"), AllOf(StartsWith("To: ada@example.org\nSubject: remuda: job 1 (sweep) failed\n"),
                                            HasSubstr("why         exited with status 3\n")));
  const std::string user = process::user_name(static_cast<int>(::getuid()));
  EXPECT_EQ(ask({"run", "--mail", user, "--", "true"}).exit.status, 0);
  EXPECT_EQ(folder_.read("arguments"), "-i " + user + "\n");
  const Finished eaten = ask({"run", "--mail", "echo", "hi"});
  EXPECT_EQ(eaten.exit.status, 2) << eaten;
  EXPECT_THAT(eaten.err, HasSubstr("--mail: echo is no user of this machine"));
  folder_.write("bin/sendmail", "#!/bin/sh\nexit 75\n");
  const Finished lost = ask({"run", "--mail", "ada@example.org", "--", "true"});
  EXPECT_EQ(lost.exit.status, 0) << "the job is as it was";
  EXPECT_THAT(lost.err, HasSubstr("--mail: the program that sends it exited with status 75"));
}

TEST_F(AfterJobs, TheEndIsToldWhereTheKeeperWasKilled) {
  const auto front = begin({"run", "-q", "--at-end", "echo \"$REMUDA_ENDED_HOW\" >\"$OUT/told\"", "--", "/bin/sh", "-c",
                            "echo >\"$OUT/up\"; exec sleep 1000"});
  ASSERT_TRUE(comes("up"));
  for (const pid_t keeper : children_of(front->pid())) ::kill(keeper, SIGKILL);
  EXPECT_EQ(front->finish().exit.status, 125);
  EXPECT_EQ(folder_.read("told"), "failed\n");
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
