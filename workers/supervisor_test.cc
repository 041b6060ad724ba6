#include "workers/supervisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <signal.h>
#include <sys/wait.h>

#include "process/testing/child_output.h"
#include "workers/event.h"

namespace remuda::workers {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr auto kReady = R"({"event":"ready"})";
constexpr auto kTrained = R"({"event":"trained"})";
constexpr auto kReport = R"({"event":"done","report":{}})";
constexpr auto kLost1 = R"({"event":"error","kind":"lost_peer","message":"rank 1 went away","peer":1})";
constexpr Patience kShort{.report_s = 0.05, .end_s = 0.05, .stop_s = 0.05, .silence_s = 0.05};

/// What a listener received, per rank.
struct Heard {
  std::map<int, std::vector<std::string>> events, lines;
  std::function<void(const Json&)> then = [](const Json&) {};
  double step_s = 0, stop_within_s = -1;
  RankListener listener() {
    return {[this](int rank, const Json& event) {
              events[rank].push_back(text_field(event, "event"));
              then(event);
            },
            [this](int rank, const std::string& line) { lines[rank].push_back(line); }, [this] { return step_s; },
            [this](int, double within_s) { stop_within_s = within_s; }};
  }
};

using Script = std::vector<std::string>;

std::vector<RankSpec> ranks(const std::vector<Script>& scripts) {
  std::vector<RankSpec> specs;
  for (const auto& script : scripts) {
    RankSpec spec{.device = fmt::format("cpu:{}", specs.size())};
    spec.process.argv = script;
    spec.process.argv.insert(spec.process.argv.begin(), FAKE_WORKER);
    specs.push_back(std::move(spec));
  }
  return specs;
}

Outcome run(const std::vector<Script>& scripts, Heard& heard, const Patience& patience = {}) {
  const RankListener listener = heard.listener();
  auto outcome = supervise(ranks(scripts), listener, patience);
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome.value_or(Outcome{});
}

Outcome run(const std::vector<Script>& scripts, const Patience& patience = {}) {
  Heard heard;
  return run(scripts, heard, patience);
}

TEST(Supervisor, DeliversEventsAndOutputPerRank) {
  Heard heard;
  const Outcome outcome = run({{"event", R"({"event":"ready"})", "print", "hello", "done"}, {"done"}}, heard);
  EXPECT_FALSE(outcome.failure);
  EXPECT_FALSE(outcome.stopped());
  EXPECT_THAT(heard.events[0], ElementsAre("ready", "done"));
  EXPECT_THAT(heard.events[1], ElementsAre("done"));
  EXPECT_THAT(heard.lines[0], ElementsAre("hello"));
  EXPECT_THAT(heard.lines[1], IsEmpty());
}

TEST(Supervisor, NamesTheRankThatWasKilledAndEndsTheOthers) {
  const Outcome outcome = run({{"wait"}, {"raise", "9"}, {"deaf", "wait"}}, kShort);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_EQ(outcome.failure->device, "cpu:1");
  EXPECT_EQ(outcome.failure->cause, "killed by signal 9 (Killed)");
}

TEST(Supervisor, ALostPeerDoesNotMaskTheDeathThatFollows) {
  const Outcome outcome = run({{"event", kLost1, "exit", "1"}, {"pause", "100", "raise", "9"}});
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_EQ(outcome.failure->cause, "killed by signal 9 (Killed)");
}

TEST(Supervisor, APeerThatHangsIsEndedAndNamed) {
  const Outcome outcome = run({{"event", kLost1, "exit", "1"}, {"deaf", "wait"}}, kShort);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_THAT(outcome.failure->cause, HasSubstr("went silent"));
}

constexpr auto kWaits = R"({"event":"lost","kind":"lost_peer","message":"rank 1 went away","peer":1})";

constexpr auto kLost0 = R"({"event":"lost","kind":"lost_peer","message":"rank 0 went away","peer":0})";

/// The outcome of a run that may lose so many ranks; what the listener is told of them, as "LEFT LEFT without LOST".
Outcome run_elastic(const std::vector<Script>& scripts, int may_be_lost, Heard& heard, std::vector<std::string>& told,
                    const Patience& patience = kShort, double notice_s = 300) {
  RankListener listener = heard.listener();
  listener.on_loss = [&](const std::vector<int>& left, const std::vector<Failure>& lost) {
    told.push_back(fmt::format("{} without {}", fmt::join(left, " "), lost.at(0).rank));
  };
  Elasticity elasticity{.may_be_lost = may_be_lost, .notice_s = notice_s};
  for (int i = 0; i < may_be_lost; ++i) elasticity.meetings.push_back(listen_on_loopback(0).value());
  auto outcome = supervise(ranks(scripts), listener, patience, std::move(elasticity));
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome.value_or(Outcome{});
}

TEST(Supervisor, TellsTheRanksOfAnElasticRunWhoIsLeft) {
  Heard heard;
  std::vector<std::string> told;
  const Script left{"event", kReady, "event", kWaits, "members", "done"};
  const Outcome outcome = run_elastic({left, {"event", kReady, "pause", "100", "raise", "9"}, left}, 1, heard, told);
  EXPECT_FALSE(outcome.failure) << outcome.failure->cause;
  EXPECT_THAT(told, ElementsAre("0 2 without 1"));
  for (const int rank : {0, 2}) {
    ASSERT_THAT(heard.lines[rank], SizeIs(1));
    const Json members = parse_json(heard.lines[rank][0], "members").value();
    EXPECT_EQ(members["generation"], 1);
    EXPECT_EQ(members["ranks"], Json({0, 2}));
    EXPECT_EQ(members["lost"][0]["cause"], "killed by signal 9 (Killed)");
    EXPECT_EQ(members["port"], parse_json(heard.lines[0][0], "members").value()["port"]) << "they meet in one place";
  }
}

TEST(Supervisor, ARankMayTakeSomeStepsToNoticeALoss) {
  const Script left{"event", kReady, "event", kWaits, "members", "done"};
  const Script slow{"event", kReady, "pause", "900", "event", kWaits, "members", "done"};
  const Script killed{"event", kReady, "pause", "400", "raise", "9"};
  for (const double step_s : {10.0, 0.0}) {
    Heard heard;
    heard.step_s = step_s;
    std::vector<std::string> told;
    run_elastic({left, killed, slow}, 2, heard, told, kShort, 0);
    EXPECT_THAT(told, ElementsAre(step_s > 0 ? "0 2 without 1" : "0 without 1"));
  }
}

TEST(Supervisor, RanksThatHaveTrainedGoOnWhenTheFirstIsLostBeforeItsReport) {
  Heard heard;
  std::vector<std::string> told;
  const Script left{"event", kReady, "event", kTrained, "members", "event", kReport};
  const Script first{"event", kReady, "event", kTrained, "pause", "100", "raise", "9"};
  const Outcome outcome = run_elastic({first, left, left}, 1, heard, told, {});
  EXPECT_FALSE(outcome.failure) << outcome.failure->cause;
  EXPECT_THAT(told, ElementsAre("1 2 without 0"));
}

TEST(Supervisor, RanksThatHaveTrainedAreDoneOnceTheFirstHasReported) {
  Heard heard;
  std::vector<std::string> told;
  const Script waits{"event", kReady, "event", kTrained, "members", "done"};
  const Outcome outcome =
      run_elastic({{"event", kReady, "event", kTrained, "pause", "100", "event", kReport}, waits}, 1, heard, told, {});
  EXPECT_FALSE(outcome.failure) << outcome.failure->cause;
  EXPECT_THAT(told, IsEmpty());
  EXPECT_THAT(heard.events[1], ElementsAre("ready", "trained", "done"));
}

TEST(Supervisor, OfRanksThatAgreeAmongThemselvesThoseGoThatAreNotLeft) {
  const Script killed{"event", kReady, "pause", "50", "raise", "9"}, hangs{"deaf", "event", kReady, "wait"};
  const auto kLeft = R"({"event":"left","generation":1,"ranks":[2,7]})";
  const Script agrees{"event", kReady, "pause", "200", "event", kLeft, "event", kReport, "done"};
  const auto outcome = supervise(ranks({killed, hangs, agrees}), {[](auto, const auto&) {}, [](auto, const auto&) {}},
                                 {}, {.may_be_lost = 2, .they_agree = true, .notice_s = 100});
  EXPECT_TRUE(outcome && !outcome->failure);
}

TEST(Supervisor, AnElasticRunThatLosesTooManyEnds) {
  Heard heard;
  std::vector<std::string> told;
  const Script left{"event", kReady, "event", kWaits, "members", "raise", "9"};
  const Script waits{"event", kReady, "event", kWaits, "members", "event", kWaits, "wait"};
  const Outcome outcome = run_elastic({left, {"event", kReady, "pause", "100", "raise", "9"}, waits}, 1, heard, told);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->rank, 0);
  EXPECT_THAT(told, SizeIs(1));
}

TEST(Supervisor, TellsWhatARankReported) {
  const Outcome outcome =
      run({{"wait"}, {"event", R"({"event":"error","kind":"usage","message":"no such model"})", "exit", "2"}}, kShort);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_EQ(outcome.failure->kind, ErrorKind::usage);
  EXPECT_EQ(outcome.failure->cause, "no such model");
}

TEST(Supervisor, KeepsTheLastOutputOfTheRankThatFailed) {
  const Outcome outcome = run({{"print", "terminate called", "exit", "134"}});
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->cause, "exited with status 134");
  EXPECT_THAT(outcome.failure->last_output, ElementsAre("terminate called"));
}

TEST(Supervisor, IgnoresWhatIsNoEventAndSaysSoOnce) {
  Heard heard;
  const Outcome outcome = run({{"event", "{", "event", "[]", "flood", "5000000", "print", "\x1b[2J", "done"}}, heard);
  EXPECT_FALSE(outcome.failure);
  EXPECT_THAT(heard.events[0], ElementsAre("done"));
  EXPECT_THAT(heard.lines[0], SizeIs(2));
  EXPECT_THAT(heard.lines[0], Contains(HasSubstr("no event was ignored")));
  EXPECT_THAT(heard.lines[0], Contains("?[2J"));
}

TEST(Supervisor, ARankThatClosesItsOutputRunsOn) {
  Heard heard;
  EXPECT_FALSE(run({{"close", "pause", "50", "done"}}, heard).failure);
}

TEST(Supervisor, EndsARankThatHangsAfterAllAreDone) {
  const Outcome outcome = run({{"done"}, {"deaf", "wait"}}, kShort);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_THAT(outcome.failure->cause, HasSubstr("and did not end, while the other ranks are done"));
}

TEST(Supervisor, ARankThatIsDoneAndDoesNotExitIsEndedAndNoFailure) {
  Heard heard;
  EXPECT_FALSE(run({{"deaf", "done", "wait"}}, heard, kShort).failure);
  EXPECT_THAT(heard.lines[0], ElementsAre(HasSubstr("did not end for 0.05 s once the work was done")));
}

TEST(Supervisor, ARankThatDiesOnceItIsDoneIsNoFailure) {
  Heard heard;
  EXPECT_FALSE(run({{"pause", "100", "done"}, {"done", "raise", "9"}}, heard, kShort).failure);
  EXPECT_THAT(heard.lines[1], ElementsAre("its process ended after its work was done: killed by signal 9 (Killed)"));
}

TEST(Supervisor, ARunThatHasReportedIsDoneWhateverBecomesOfItsRanks) {
  const Script hangs{"deaf", "wait"};
  EXPECT_FALSE(run({{"event", kReport}, {"pause", "500", "raise", "9"}, hangs, hangs}, kShort).failure);
}

constexpr Patience kSilent{.report_s = 0.05, .end_s = 0.05, .stop_s = 0.05};

TEST(Supervisor, OnceTheFirstRankHasTrainedItIsLeftToEndItsWork) {
  const Script first{"event", kReady, "event", kTrained, "pause", "900", "event", kReport};
  EXPECT_FALSE(run({first, {"event", kReady, "pause", "500", "raise", "9"}}, kSilent).failure);
}

TEST(Supervisor, AFirstRankThatHangsOnceItHasTrainedIsEndedAlsoWhereAnotherOneDied) {
  const Script first{"event", kReady, "event", kTrained, "deaf", "wait"};
  const Outcome outcome = run({first, {"event", kReady, "pause", "100", "raise", "9"}}, kShort);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->rank, 0);
  EXPECT_THAT(outcome.failure->cause, HasSubstr("sent no event for 0.05 s after the last step"));
}

TEST(Supervisor, RanksThatWaitForAFirstOneThatHangsOnceItHasTrainedGoOnWithoutIt) {
  Heard heard;
  std::vector<std::string> told;
  const Script first{"event", kReady, "event", kTrained, "deaf", "wait"};
  const Script waits{"event", kReady, "event", kLost0, "members", "event", kReport};
  EXPECT_FALSE(run_elastic({first, waits, waits}, 1, heard, told).failure);
  EXPECT_THAT(told, ElementsAre("1 2 without 0"));
}

TEST(Supervisor, ARankThatCannotStartIsAnErrorAndTakesTheOthersAlong) {
  Heard heard;
  auto specs = ranks({{"wait"}, {}});
  specs[1].process.argv = {"/nowhere/worker"};
  const RankListener listener = heard.listener();
  const auto outcome = supervise(std::move(specs), listener);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "there is no program /nowhere/worker");
}

/// Runs the ranks in a process of its own that is sent `signals`, one per "ready" event it receives. Its exit status:
/// the signal in the outcome, plus 100 if it has a failure, plus 50 if rank 0 was done.
/// A 0 is no signal. Of them `may_be_lost` may be lost.
int status_after(const std::vector<int>& signals, const std::vector<Script>& scripts, const Patience& patience,
                 double step_s = 0, bool ignores_hang_up = false, int may_be_lost = 0) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGHUP, ignores_hang_up ? SIG_IGN : SIG_DFL);
    Heard heard;
    heard.step_s = step_s;
    size_t sent = 0;
    heard.then = [&](const Json& event) {
      if (text_field(event, "event") == "ready" && sent < signals.size()) ::kill(::getpid(), signals[sent++]);
    };
    std::vector<std::string> told;
    const Outcome outcome =
        may_be_lost > 0 ? run_elastic(scripts, may_be_lost, heard, told, patience) : run(scripts, heard, patience);
    const bool done = !heard.events[0].empty() && heard.events[0].back() == "done";
    ::_exit(outcome.signal + (outcome.failure ? 100 : 0) + (done ? 50 : 0));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Supervisor, CtrlCLetsTheRanksStopTogether) {
  const Script polite{"polite", "event", kReady, "wait"};
  EXPECT_EQ(status_after({SIGINT}, {polite}, {}), SIGINT + 50);
  EXPECT_EQ(status_after({SIGTERM}, {polite}, {}), SIGTERM + 50);
}

TEST(Supervisor, AClosedTerminalStopsTheRanksAsCtrlCDoes) {
  EXPECT_EQ(status_after({SIGHUP}, {{"polite", "event", kReady, "wait"}}, {}), SIGHUP + 50);
  const Script late{"deaf", "event", kReady, "pause", "50", "event", kReady, "pause", "500", "done"};
  EXPECT_EQ(status_after({SIGHUP, SIGHUP}, {late}, {}), SIGHUP + 50) << "the kernel and the shell both send it";
  EXPECT_EQ(status_after({SIGINT, SIGHUP}, {late}, {}), SIGINT + 50);
}

TEST(Supervisor, UnderNohupAClosedTerminalStopsNothing) {
  EXPECT_EQ(status_after({SIGHUP}, {{"polite", "event", kReady, "pause", "300", "done"}}, {}, 0, true), 50);
}

TEST(Supervisor, AStepUnderWayMayEndBeforeTheGraceBegins) {
  const Script slow{"deaf", "event", kReady, "pause", "1000", "done"};
  EXPECT_EQ(status_after({SIGINT}, {slow}, kShort, 1000), SIGINT + 50);
}

TEST(Supervisor, RanksThatDieOfTheStopAreNoFailure) {
  EXPECT_EQ(status_after({SIGINT}, {{"event", kReady, "wait"}, {"wait"}}, {}), SIGINT);
}

TEST(Supervisor, RanksThatDoNotStopAreKilledAfterAGrace) {
  EXPECT_EQ(status_after({SIGINT}, {{"deaf", "event", kReady, "wait"}}, kShort), SIGINT);
}

TEST(Supervisor, ARankThatWritesItsWeightsMayEnd) {
  const Script writing{"deaf",  "event", kReady, "event", R"({"event":"output","output":"weights"})",
                       "pause", "1500",  "done"};
  EXPECT_EQ(status_after({SIGINT}, {writing}, {.stop_s = 0.5}), SIGINT + 50);
  EXPECT_EQ(status_after({SIGINT}, {writing}, kShort), SIGINT) << "unless it falls silent";
}

TEST(Supervisor, TheSecondCtrlCKillsAtOnce) {
  const Patience endless{.stop_s = 1000};
  const Script deaf{"deaf", "event", kReady, "pause", "50", "event", kReady, "wait"};
  EXPECT_EQ(status_after({SIGINT, SIGINT}, {deaf}, endless), SIGINT);
}

// `remuda run` repeats SIGTERM at half of the grace time; a checkpoint may take all of it.
TEST(Supervisor, TheSecondSigtermIsTheSameWord) {
  const Patience endless{.stop_s = 1000};
  const Script slow{"deaf", "event", kReady, "pause", "50", "event", kReady, "pause", "100", "done"};
  EXPECT_EQ(status_after({SIGTERM, SIGTERM}, {slow}, endless), SIGTERM + 50);
}

// The state of the run is with those that are left: together they can keep it.
TEST(Supervisor, RanksThatLoseOneWhileTheyStopMeetBeforeTheyEnd) {
  const Script left{"deaf", "event", kReady, "event", kWaits, "members", "pause", "200", "done"};
  const Script killed{"deaf", "event", kReady, "pause", "50", "raise", "9"};
  const Patience patience{.end_s = 0.05, .stop_s = 20, .regroup_s = 20};
  EXPECT_EQ(status_after({0, 0, SIGTERM}, {left, killed, left}, patience, 0, false, 1), SIGTERM + 50);
}

TEST(Supervisor, RanksThatHaveJustMetHaveAsLongToStop) {
  const Script left{"deaf", "event", kReady, "event", kWaits, "members", "event", kReady, "pause", "300", "done"};
  const Script killed{"deaf", "event", kReady, "pause", "50", "raise", "9"};
  const Patience patience{.end_s = 0.05, .stop_s = 0.05, .regroup_s = 20};
  EXPECT_EQ(status_after({0, 0, 0, SIGTERM}, {left, killed, left}, patience, 0, false, 1), SIGTERM + 50);
}

TEST(Supervisor, RanksThatCannotGoOnWhileTheyStopAreToldSoAndEnd) {
  const Script waits{"deaf", "event", kReady, "event", kWaits, "members", "exit", "1"};
  const Script killed{"deaf", "event", kReady, "pause", "50", "raise", "9"};
  const Patience patience{.end_s = 20, .stop_s = 20};
  EXPECT_EQ(status_after({0, 0, SIGTERM}, {waits, killed, killed}, patience, 0, false, 1), SIGTERM);
}

TEST(Supervisor, RanksThatMeetWhileTheyStopHaveALimit) {
  const Script left{"deaf", "event", kReady, "event", kWaits, "members", "wait"};
  const Script killed{"deaf", "event", kReady, "pause", "50", "raise", "9"};
  const Patience patience{.end_s = 0.05, .stop_s = 20, .regroup_s = 0.05};
  EXPECT_EQ(status_after({0, 0, SIGTERM}, {left, killed, left}, patience, 0, false, 1), SIGTERM);
}

TEST(Supervisor, ARankThatDiesWhileStoppingDoesNotHoldTheOthersForLong) {
  const Patience patience{.end_s = 0.05, .stop_s = 1000};
  EXPECT_EQ(status_after({SIGINT}, {{"deaf", "event", kReady, "wait"}, {"wait"}}, patience), SIGINT);
}

TEST(Supervisor, GivesTheSignalsBackAfterwards) {
  run({{"done"}});
  sigset_t blocked;
  ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_FALSE(::sigismember(&blocked, SIGINT));
  EXPECT_FALSE(::sigismember(&blocked, SIGTERM));
}

}  // namespace
}  // namespace remuda::workers
