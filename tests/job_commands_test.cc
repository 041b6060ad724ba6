// `remuda queue`, `why`, `cancel`, `rerun` and `logs`, as used on jobs that were started before.
#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class JobCommands : public JobTest {
 protected:
  std::string why(const std::string& job) const { return ask({"why", job}).out; }
  bool ends(const std::string& job) const {
    return eventually([&] { return why(job).find(" ended ") != std::string::npos; }, kPatience_s);
  }
  /// Holds all eight devices from here on.
  void fill() const {
    ASSERT_EQ(detach("echo >\"$OUT/up\"; sleep 1000", {"-n", "8"}), "1");
    ASSERT_TRUE(comes("up"));
  }

  static constexpr const char* kForever = "echo >\"$OUT/up-$REMUDA_JOB\"; sleep 1000";
};

TEST_F(JobCommands, WhySaysThatAJobWasCancelledWhileItHasItsGraceTime) {
  detach("trap '' TERM; echo >\"$OUT/up\"; while :; do sleep 0.05; done", {"--grace", "1h"});
  ASSERT_TRUE(comes("up"));
  EXPECT_THAT(why("1"), Not(HasSubstr("cancelled")));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  EXPECT_THAT(why("1"), HasSubstr("It was cancelled, and has its grace time to end"));
  const auto json = parse_json(ask({"why", "--json", "1"}).out, "why");
  ASSERT_TRUE(json);
  EXPECT_TRUE((*json)["jobs"][0]["cancelled"].get<bool>());
  const pid_t keeper = (*json)["jobs"][0]["keeper"]["pid"];
  EXPECT_EQ(::kill(keeper, SIGKILL), 0);
}

TEST_F(JobCommands, ReleaseEndsNoJobThatIsNoHold) {
  const std::string job = detach(kForever), array = detach("sleep 1000", {"--array", "0-1"});
  ASSERT_TRUE(comes("up-1"));
  EXPECT_EQ(ask({"release", job}).err, "remuda: job 1 is not of `remuda hold`; `remuda cancel 1` ends it\n");
  EXPECT_EQ(ask({"release", array}).exit.status, 2);
  EXPECT_THAT(why(job), HasSubstr("has run for"));
  EXPECT_EQ(ask({"cancel", job, array}).exit.status, 0);
}

TEST_F(JobCommands, CancelEndsTheOthersWhereOneHasEnded) {
  const std::string first = detach(kForever), second = detach("true"), third = detach(kForever);
  ASSERT_TRUE(ends(second));
  ASSERT_TRUE(comes("up-1") && comes("up-3"));
  const Finished cancelled = ask({"cancel", first, second, "99", third, first});
  EXPECT_EQ(cancelled.exit.status, 2) << cancelled;
  EXPECT_THAT(cancelled.err, AllOf(HasSubstr("remuda: job 2 has ended already\n"), HasSubstr("there is no job 99\n")));
  EXPECT_THAT(cancelled.err, Not(HasSubstr("job 1")));
  EXPECT_TRUE(ends(first));
  EXPECT_TRUE(ends(third));
}

TEST_F(JobCommands, JobsMayBeListedWithCommas) {
  fill();
  EXPECT_EQ(detach("true"), "2");
  EXPECT_EQ(detach("true"), "3");
  EXPECT_EQ(ask({"pause", "2,3"}).exit.status, 0);
  EXPECT_THAT(ask({"show", "2,3"}).out, AllOf(HasSubstr("job         2\n"), HasSubstr("job         3\n")));
  EXPECT_EQ(ask({"cancel", "1,2", "3"}).exit.status, 0);
  EXPECT_THAT(ask({"wait", "2,3"}).err, HasSubstr("job 2 was cancelled"));
}

TEST_F(JobCommands, WhyAsJsonHasWhatTheTextHas) {
  fill();
  const auto json = parse_json(ask({"why", "--json", "1"}).out, "why");
  ASSERT_TRUE(json);
  const Json& job = (*json)["jobs"][0];
  EXPECT_EQ(job["stage"], "running");
  EXPECT_EQ(job["job"], "1");
  EXPECT_EQ(job["labels"].size(), 8);
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
}

TEST_F(JobCommands, CancelTakesAnArrayAndItsJobsAtOnce) {
  fill();
  const std::string array = detach("true", {"--array", "0-1"});
  ASSERT_TRUE(eventually([&] { return waiting() == 3; }, kPatience_s));
  const Finished cancelled = ask({"cancel", array, array + ".0", "1"});
  EXPECT_EQ(cancelled.exit.status, 0) << cancelled;
  EXPECT_TRUE(ends(array));
}

TEST_F(JobCommands, AnArrayRunsAgainOnlyWhenAllOfItHasEnded) {
  const std::string array =
      detach("trap '' TERM; echo >\"$OUT/up$REMUDA_ARRAY_INDEX\"; sleep 600", {"--array", "0-1", "--grace", "5s"});
  ASSERT_TRUE(comes("up0") && comes("up1"));
  EXPECT_EQ(ask({"cancel", array}).exit.status, 0);
  const Finished again = ask({"rerun", array});  // within their grace time
  EXPECT_EQ(again.exit.status, 2) << again;
  EXPECT_THAT(again.err, HasSubstr("has not ended: 2 running"));
  EXPECT_TRUE(ends(array));
}

TEST_F(JobCommands, QueueSaysLittleInEightyColumns) {
  fill();
  detach("sleep 1; echo this is a command that is a good deal longer than what fits beside the others", {"-n", "2"});
  detach("true", {"--after", "2"});
  detach("true");
  const std::string queue = ask({"queue"}).out;
  EXPECT_THAT(queue, HasSubstr("2 wanted, 0 free\n"));
  EXPECT_THAT(queue, HasSubstr("after job 2\n"));
  EXPECT_THAT(queue, HasSubstr("1 wanted, 0 free; behind job 2\n"));
  EXPECT_EQ(ask({"cancel", "4", "3", "2", "1"}).exit.status, 0);
}

TEST_F(JobCommands, AnArrayIsOneLineWithTheStatesOfItsIndices) {
  fill();
  EXPECT_EQ(detach("test $REMUDA_ARRAY_INDEX != 1", {"--array", "0-19"}), "2");
  ASSERT_TRUE(eventually([&] { return ask({"queue"}).out.find("20 waiting") != std::string::npos; }, kPatience_s));
  const std::string queue = ask({"queue"}).out;
  EXPECT_EQ(std::ranges::count(queue, '\n'), 2) << queue;
  EXPECT_THAT(why("2"), HasSubstr("ago: 20 waiting\n"));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  ASSERT_TRUE(ends("2"));
  EXPECT_THAT(why("2"), AllOf(HasSubstr("ago: 19 done, 1 failed\n"), HasSubstr("failed     1\n")));
  EXPECT_THAT(why("2"), HasSubstr("`remuda rerun 2`"));
  EXPECT_THAT(why("2.1"), HasSubstr("Job 2.1 ended"));
}

TEST_F(JobCommands, IndicesEnterThePoolInTheirOrder) {
  const std::string array = detach("echo $REMUDA_JOB", {"--array", "0-23"});
  ASSERT_TRUE(ends(array));
  for (int index = 0; index < 24; ++index)
    EXPECT_EQ(ask({"logs", fmt::format("{}.{}", array, index)}).out, fmt::format("{}\n", 2 + index));
}

TEST_F(JobCommands, ACancelledArrayCountsWhatWasDone) {
  const std::string array =
      detach("test $REMUDA_ARRAY_INDEX -lt 2 && exit 0; echo >\"$OUT/up-$REMUDA_ARRAY_INDEX\"; sleep 1000",
             {"--array", "0-9%2"});
  ASSERT_TRUE(comes("up-2") && comes("up-3"));
  EXPECT_EQ(ask({"cancel", array}).exit.status, 0);
  ASSERT_TRUE(ends(array + ".2") && ends(array + ".3") && ends(array));
  EXPECT_THAT(why(array), HasSubstr("ago: 2 done, 8 cancelled\n"));
}

TEST_F(JobCommands, RerunStartsWhatIsNotDone) {
  const std::string script =
      "echo run $REMUDA_ARRAY_INDEX 'a\nb'; test -e \"$OUT/good\" || test $REMUDA_ARRAY_INDEX = 1";
  const std::string array = detach(script, {"--array", "0-3%2", "-n", "2", "--name", "sweep"});
  ASSERT_TRUE(ends(array));
  folder_.write("good", "");
  const Finished again = ask({"rerun", array});
  EXPECT_EQ(again.exit.status, 0) << again;
  ASSERT_EQ(again.out, "6\n");
  ASSERT_TRUE(ends("6"));
  EXPECT_THAT(why("6"), HasSubstr("ago: 3 done\n"));
  EXPECT_EQ(ask({"logs", "6"}).out, "[0] run 0 a\n[0] b\n[2] run 2 a\n[2] b\n[3] run 3 a\n[3] b\n");
  const Finished one = ask({"rerun", array + ".3"});
  EXPECT_EQ(one.out, "10\n") << one;
  ASSERT_TRUE(ends("10"));
  EXPECT_EQ(ask({"logs", "10.3"}).out, "run 3 a\nb\n");
  EXPECT_THAT(ask({"rerun", "6"}).err, HasSubstr("there is nothing to run again"));
  EXPECT_THAT(ask({"rerun", array + ".1"}).err, HasSubstr("there is nothing to run again"));
}

TEST_F(JobCommands, RerunGoesToTheFolderOfTheJobAndKeepsItsFlags) {
  const std::string job = detach("pwd; echo $REMUDA_DEVICES | tr -dc , ; exit 3", {"-n", "3", "--name", "one"});
  ASSERT_TRUE(ends(job));
  const std::string first = ask({"logs", job}).out;
  EXPECT_EQ(ask({"rerun", job}).out, "2\n");
  ASSERT_TRUE(ends("2"));
  EXPECT_EQ(ask({"logs", "2"}).out, first);
  EXPECT_THAT(ask({"rerun", "9"}).err, HasSubstr("there is no job 9"));
  const std::string running = detach(kForever);
  ASSERT_TRUE(comes("up-3"));
  EXPECT_THAT(ask({"rerun", running}).err, HasSubstr("job 3 has not ended"));
  EXPECT_EQ(ask({"cancel", running}).exit.status, 0);
}

TEST_F(JobCommands, CompletionKnowsTheJobs) {
  EXPECT_EQ(ask({"completion", "--jobs"}).out, "");
  const std::string ended = detach("true"), array = detach(kForever, {"--array", "3,4", "-n", "4"});
  ASSERT_TRUE(ends(ended));
  ASSERT_TRUE(comes("up-3") && comes("up-4"));
  EXPECT_EQ(ask({"completion", "--jobs"}).out, "2\n2.3\n2.4\n1\n");
  EXPECT_EQ(ask({"cancel", array}).exit.status, 0);
  EXPECT_EQ(ask({"completion"}).exit.status, 2);
}

TEST_F(JobCommands, LogsOfAWaitingJobReportThatItWaits) {
  fill();
  const std::string job = detach("echo late");
  const Finished waits = ask({"logs", job});
  EXPECT_EQ(waits.exit.status, 0) << waits;
  EXPECT_EQ(waits.out, "");
  EXPECT_THAT(waits.err, HasSubstr("remuda: job 2 waits"));
  const auto follower = begin({"logs", "-f", job});
  EXPECT_TRUE(eventually([&] { return follower->err().find("job 2 waits") != std::string::npos; }, kPatience_s));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  const Finished followed = follower->finish(kPatience_s);
  EXPECT_EQ(followed.out, "late\n") << followed;
  EXPECT_EQ(ask({"logs", job}).err, "");
}

}  // namespace
}  // namespace remuda::tests
