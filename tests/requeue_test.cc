// `remuda run --requeue`: a job that was stopped, but not permanently, waits for its turn again and continues from its
// checkpoint.
#include <csignal>
#include <gmock/gmock.h>

#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Counts its starts in "starts", and saves its progress at the signal. Done at the third step.
constexpr const char* kTrainer =
    "step=$(cat \"$OUT/checkpoint\" 2>/dev/null || echo 0);"
    "trap 'echo $step >\"$OUT/checkpoint\"; exit 75' TERM; echo $step >>\"$OUT/starts\";"
    "step=$((step + 1)); test $step -ge 3 && exit 0; while :; do sleep 0.05; done";

class Requeue : public JobTest {
 protected:
  static std::vector<std::string> job(std::vector<std::string> flags, const std::string& script) {
    flags.insert(flags.begin(), {"run", "--requeue"});
    flags.insert(flags.end(), {"--", "/bin/sh", "-c", script});
    return flags;
  }
  bool has_started(const std::string& starts) const {
    return eventually([&] { return folder_.has("starts") && folder_.read("starts") == starts; }, kPatience_s);
  }
};

TEST_F(Requeue, GoesOnFromItsCheckpointAfterEachTimeLimit) {
  const Finished finished = ask(job({"--time-limit", "2s"}, kTrainer));
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(folder_.read("starts"), "0\n1\n2\n");
  EXPECT_THAT(finished.err, HasSubstr("reached its time limit of 2 s; queued again")) << finished;
  EXPECT_THAT(ask({"why", "1"}).out, HasSubstr("Job 1 ended"));
}

TEST_F(Requeue, GoesOnAfterSigterm) {
  const auto program = begin(job({}, kTrainer));
  ASSERT_TRUE(has_started("0\n"));
  program->signal(SIGTERM);
  ASSERT_TRUE(has_started("0\n1\n"));
  program->signal(SIGTERM);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(folder_.read("starts"), "0\n1\n2\n");
}

TEST_F(Requeue, EndsWithoutTheFlag) {
  const auto program = begin({"run", "--", "/bin/sh", "-c", kTrainer});
  ASSERT_TRUE(has_started("0\n"));
  program->signal(SIGTERM);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 75) << finished;
}

TEST_F(Requeue, EndsForGoodWhenToldTwice) {
  const auto program = begin(job({},
                                 "trap 'echo heard >\"$OUT/heard\"' TERM; echo x >>\"$OUT/starts\"; "
                                 "while :; do sleep 0.05; done"));
  ASSERT_TRUE(has_started("x\n"));
  program->signal(SIGTERM);
  ASSERT_TRUE(comes("heard"));
  eventually([] { return false; }, 1.1);  // within a second both signals would count as one
  program->signal(SIGTERM);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 128 + SIGKILL) << finished;
  EXPECT_EQ(folder_.read("starts"), "x\n");
}

TEST_F(Requeue, HasItsGraceWhenKeeperAndFrontAreToldAtOnce) {
  const auto program = begin(job({}, kTrainer));
  ASSERT_TRUE(has_started("0\n"));
  for (const pid_t keeper : children_of(program->pid())) ::kill(keeper, SIGTERM);  // as systemd signals a whole cgroup
  program->signal(SIGTERM);
  ASSERT_TRUE(has_started("0\n1\n"));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  program->finish(kPatience_s);
}

TEST_F(Requeue, IsNotQueuedAgainWhenCancelled) {
  const auto program = begin(job({}, kTrainer));
  ASSERT_TRUE(has_started("0\n"));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 75) << finished;
  EXPECT_EQ(folder_.read("starts"), "0\n");
}

/// A job of higher priority takes the devices as soon as the first job is stopped, so the first one waits.
class RequeueBehindAnother : public Requeue {
 protected:
  void SetUp() override {
    first_ = begin(job({"-n", "8"}, kTrainer));
    ASSERT_TRUE(has_started("0\n"));
    second_ = begin({"run", "-n", "8", "--priority", "1", "--", "/bin/sh", "-c",
                     "echo $$ >\"$OUT/second\"; while ! test -e \"$OUT/go\"; do sleep 0.05; done"});
    ASSERT_TRUE(comes_to_wait(1));
    first_->signal(SIGTERM);
    ASSERT_TRUE(comes("second"));
    ASSERT_TRUE(comes_to_wait(1)) << first_->err();
    EXPECT_EQ(pool()["waiting"][0]["id"], 1);
  }
  void TearDown() override {
    folder_.write("go", "");
    second_->finish(kPatience_s);
    JobTest::TearDown();
  }

  std::unique_ptr<RunningProgram> first_, second_;
};

TEST_F(RequeueBehindAnother, StartsAgainWhenThatHasEnded) {
  folder_.write("go", "");
  ASSERT_TRUE(has_started("0\n1\n"));
  first_->signal(SIGTERM);
  EXPECT_EQ(first_->finish(kPatience_s).exit.status, 0);
}

TEST_F(RequeueBehindAnother, CanBeCancelledMeanwhile) {
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  const Finished finished = first_->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 125) << finished;
  EXPECT_THAT(finished.err, HasSubstr("was cancelled")) << finished;
}

TEST_F(RequeueBehindAnother, LeavesTheQueueAtTheNextSigterm) {
  first_->signal(SIGTERM);
  EXPECT_EQ(first_->finish(kPatience_s).exit.status, 128 + SIGTERM);
  EXPECT_EQ(waiting(), 0U);
}

TEST_F(RequeueBehindAnother, LeavesTheQueueWhenKilled) {
  first_->signal(SIGKILL);
  EXPECT_TRUE(comes_to_wait(0));
}

TEST_F(RequeueBehindAnother, KeepsThoseWaitingThatStartAfterIt) {
  const auto third = begin({"run", "--after", "1", "--", "echo", "last"});
  ASSERT_TRUE(comes_to_wait(2));
  EXPECT_THAT(ask({"why", "3"}).out, HasSubstr("job 1, which must end well before, is waiting"));
  folder_.write("go", "");
  ASSERT_TRUE(has_started("0\n1\n"));
  EXPECT_THAT(third->out(), IsEmpty());
  first_->signal(SIGTERM);
  EXPECT_EQ(first_->finish(kPatience_s).exit.status, 0);
  EXPECT_EQ(third->finish(kPatience_s).out, "last\n");
}

TEST_F(Requeue, MayItselfHaveWaitedForAnother) {
  EXPECT_EQ(ask({"run", "--", "true"}).exit.status, 0);
  const Finished finished = ask(job({"--after", "1", "--time-limit", "2s"}, kTrainer));
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(folder_.read("starts"), "0\n1\n2\n");
}

TEST_F(Requeue, CountsRestartsApart) {
  const char* script =
      "trap 'exit 75' TERM; echo x >>\"$OUT/starts\"; case $(wc -l <\"$OUT/starts\") in 1|3) exit 5;; 4) exit 0;; esac;"
      "while :; do sleep 0.05; done";
  const Finished finished = ask(job({"--restart", "1", "--time-limit", "4s"}, script));
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(folder_.read("starts"), "x\nx\nx\nx\n");
  EXPECT_THAT(finished.err, HasSubstr("starts again (1 of 1)"));
}

TEST_F(Requeue, QueuesAgainWhatIsStoppedBetweenARestartAndTheNext) {
  const auto program =
      begin(job({"--restart", "9"}, "echo x >>\"$OUT/starts\"; test $(wc -l <\"$OUT/starts\") -ge 5 || exit 5"));
  ASSERT_TRUE(has_started("x\nx\nx\n"));  // the next start is four seconds away
  program->signal(SIGTERM);
  ASSERT_TRUE(has_started("x\nx\nx\nx\nx\n"));
  EXPECT_EQ(program->finish(kPatience_s).exit.status, 0);
}

}  // namespace
}  // namespace remuda::tests
