// `remuda run --array`: a job for each index, and one for the array itself.
#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <set>

#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Array : public JobTest {
 protected:
  std::vector<std::string> words(const std::string& indices, const std::string& script,
                                 std::vector<std::string> flags = {}) const {
    flags.insert(flags.begin(), {"run", "--array", indices});
    flags.insert(flags.end(), {"--", "/bin/sh", "-c", script});
    return flags;
  }
  Finished run(const std::string& indices, const std::string& script, std::vector<std::string> flags = {}) const {
    return ask(words(indices, script, std::move(flags)));
  }
  std::unique_ptr<RunningProgram> start(const std::string& indices, const std::string& script,
                                        std::vector<std::string> flags = {}) const {
    return begin(words(indices, script, std::move(flags)));
  }
  /// Files that the script wrote, by index.
  bool come(const std::string& prefix, int count) const {
    return eventually([&] { return files(prefix) == count; }, kPatience_s);
  }
  int files(const std::string& prefix) const {
    const auto names = folder_.names();
    return static_cast<int>(std::ranges::count_if(names, [&](const auto& name) { return name.starts_with(prefix); }));
  }
  std::set<int64_t> holders() const {
    std::set<int64_t> jobs;
    for (const Json& lease : leases()) jobs.insert(lease["job"].get<int64_t>());
    return jobs;
  }

  static constexpr const char* kWithBackground =
      "setsid sleep 1000 & echo $$ >\"$OUT/up-$REMUDA_ARRAY_INDEX\"; while :; do sleep 0.1; done";
  static constexpr const char* kForever = "echo $$ >\"$OUT/up-$REMUDA_ARRAY_INDEX\"; while :; do sleep 0.1; done";
};

TEST_F(Array, RunsAJobForEachIndex) {
  const Finished finished =
      run("1-3,7",
          "echo $REMUDA_ARRAY $REMUDA_ARRAY_INDEX; echo $REMUDA_JOB $REMUDA_DEVICES >\"$OUT/ran-$REMUDA_ARRAY_INDEX\"");
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("job 1: 4 of 4 indices done, 0 failed"));
  EXPECT_EQ(files("ran-"), 4);
  EXPECT_EQ(folder_.read("ran-1").substr(0, 2), "2 ");
  EXPECT_EQ(ask({"logs", "1"}).out, "[1] 1 1\n[2] 1 2\n[3] 1 3\n[7] 1 7\n");
  EXPECT_EQ(ask({"logs", "2"}).out, "1 1\n");
}

TEST_F(Array, EndsWithTheFirstFailureButLetsTheOthersRun) {
  const Finished finished =
      run("0-5%1", "test $REMUDA_ARRAY_INDEX -ge 2 || exit $((4 + $REMUDA_ARRAY_INDEX)); echo ran");
  EXPECT_EQ(finished.exit.status, 4) << finished;
  EXPECT_THAT(finished.err, HasSubstr("4 of 6 indices done, 2 failed (index 0: status 4, index 1: status 5)"));
  EXPECT_THAT(ask({"why", "1"}).out, HasSubstr("2 failed"));
  const auto why = parse_json(ask({"why", "--json", "1"}).out, "why");
  ASSERT_TRUE(why);
  EXPECT_EQ((*why)["jobs"][0]["id"], 1);
  EXPECT_EQ((*why)["jobs"][0]["indices"]["failed"].size(), 2U);
}

TEST_F(Array, RunsAsManyAtOnceAsItMay) {
  const auto program = start("0-7%2", kForever);
  ASSERT_TRUE(come("up-", 2));
  EXPECT_THAT(holders(), SizeIs(2));
  EXPECT_EQ(pool()["waiting"].size(), 1U) << "the array itself, and no third index";
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  program->finish(kPatience_s);
  EXPECT_EQ(files("up-"), 2);
}

TEST_F(Array, KeepsOneWaitingWhenTheMachineIsFull) {
  const auto program = start("0-99", kForever, {"-n", "4"});
  ASSERT_TRUE(come("up-", 2));
  ASSERT_TRUE(comes_to_wait(2)) << "the array itself, and the next index";
  program->signal(SIGTERM);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 128 + SIGTERM) << finished;
  EXPECT_THAT(finished.err, HasSubstr("97 not started"));
}

TEST_F(Array, IsCancelledAsAWhole) {
  const auto program = start("0-9", kForever, {"-n", "2"});
  ASSERT_TRUE(come("up-", 4));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_NE(finished.exit.status, 0) << finished;
  EXPECT_THAT(finished.err, HasSubstr("was cancelled"));
  EXPECT_THAT(leases(), IsEmpty());
  EXPECT_EQ(waiting(), 0U);
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 2);
}

TEST_F(Array, LosesOneIndexWhenThatIsCancelled) {
  const auto program = start("0-1", "test $REMUDA_ARRAY_INDEX = 1 && exit 0; echo >\"$OUT/up\"; sleep 1000");
  ASSERT_TRUE(comes("up"));
  EXPECT_EQ(ask({"cancel", "2"}).exit.status, 0);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 128 + SIGTERM) << finished;
  EXPECT_THAT(finished.err, HasSubstr("1 of 2 indices done, 1 failed"));
}

TEST_F(Array, IsWaitedForAsAWhole) {
  const auto program = start(
      "0-4", "while ! test -e \"$OUT/go\"; do sleep 0.05; done; echo >\"$OUT/ran-$REMUDA_ARRAY_INDEX\"", {"-n", "4"});
  ASSERT_TRUE(eventually([&] { return leases().size() == 8; }, kPatience_s));
  const auto after = begin({"run", "--after", "1", "--", "/bin/sh", "-c", "ls \"$OUT\" | grep -c ran-"});
  EXPECT_TRUE(eventually([&] { return after->err().find("array 1, which must end well before") != std::string::npos; },
                         kPatience_s));
  folder_.write("go", "");
  EXPECT_EQ(after->finish(kPatience_s).out, "5\n");
  EXPECT_EQ(program->finish(kPatience_s).exit.status, 0);
}

TEST_F(Array, FailsForThoseThatWaitForIt) {
  const auto program = start("0-1", "while ! test -e \"$OUT/go\"; do sleep 0.05; done; exit $REMUDA_ARRAY_INDEX");
  ASSERT_TRUE(eventually([&] { return leases().size() == 2; }, kPatience_s));
  const auto after = begin({"run", "--after", "1", "--", "true"});
  ASSERT_TRUE(comes_to_wait(2));
  folder_.write("go", "");
  EXPECT_EQ(after->finish(kPatience_s).exit.status, 125);
  EXPECT_EQ(program->finish(kPatience_s).exit.status, 1);
}

TEST_F(Array, EndsWithItsFront) {
  const auto program = start("0-9", kWithBackground, {"-n", "2", "--grace", "0.2s"});
  ASSERT_TRUE(come("up-", 4));
  ::kill(program->pid(), SIGKILL);
  EXPECT_TRUE(comes_free());
  EXPECT_TRUE(comes_to_wait(0));
}

TEST_F(Array, EndsWithItsKeeper) {
  const auto program = start("0-9", kWithBackground, {"-n", "2", "--grace", "0.2s"});
  ASSERT_TRUE(come("up-", 4));
  const auto children = children_of(program->pid());
  ASSERT_FALSE(children.empty());
  ::kill(children.front(), SIGKILL);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_NE(finished.exit.status, 0) << finished;
  EXPECT_THAT(finished.err, HasSubstr("its keeper was killed"));
  EXPECT_TRUE(comes_free());
  EXPECT_TRUE(comes_to_wait(0));
}

TEST_F(Array, CountsAnIndexAsFailedWhoseFrontWasKilled) {
  const auto program = start("0-1", "test $REMUDA_ARRAY_INDEX = 1 && exit 0; echo $PPID >\"$OUT/up\"; sleep 1000");
  const pid_t keeper = pid_in("up");
  const auto fronts = children_of(program->pid());
  const auto front = std::ranges::find_if(fronts, [&](pid_t pid) {
    const auto keepers = children_of(pid);
    return std::ranges::find(keepers, keeper) != keepers.end();
  });
  ASSERT_NE(front, fronts.end());
  ::kill(*front, SIGKILL);
  const Finished finished = program->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 125) << finished;
  EXPECT_THAT(finished.err, HasSubstr("1 of 2 indices done, 1 failed (index 0: status 125)"));
}

TEST_F(Array, GoesToTheBackground) {
  const Finished started =
      run("0-2", "echo $REMUDA_ARRAY_INDEX; test $REMUDA_ARRAY_INDEX = 1 || exit 0; exit 8", {"-d"});
  EXPECT_EQ(started.out, "1\n") << started;
  EXPECT_EQ(started.err, "");
  EXPECT_TRUE(
      eventually([&] { return ask({"why", "1"}).out.find("2 done, 1 failed") != std::string::npos; }, kPatience_s));
  EXPECT_EQ(ask({"logs", "1"}).out, "[0] 0\n[1] 1\n[2] 2\n");
  EXPECT_EQ(ask({"logs", "-f", "1"}).exit.status, 2);
}

TEST_F(Array, WritesAFileForEachIndexWhenAsked) {
  EXPECT_EQ(run("3,4", "echo $REMUDA_ARRAY_INDEX", {"--log", folder_.path("log")}).exit.status, 0);
  EXPECT_EQ(folder_.read("log.3"), "3\n");
  EXPECT_EQ(folder_.read("log.4"), "4\n");
}

TEST_F(Array, SaysOnceWhatIsWrongWithAllOfIt) {
  const auto status = [&](const std::string& indices, std::vector<std::string> flags) {
    const Finished finished = run(indices, "true", std::move(flags));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished;
    return finished.exit.status;
  };
  EXPECT_EQ(status("0-9", {"-n", "9"}), 3);
  EXPECT_EQ(status("9-0", {}), 2);
  EXPECT_EQ(status("0-9", {"--after", "99"}), 2);
  folder_.write("tasks", "true\n");
  EXPECT_EQ(status("0-9", {"--tasks", folder_.path("tasks")}), 2);
  EXPECT_EQ(run("0-9", "true", {"--dry-run"}).exit.status, 0);
}

TEST_F(Array, StartsNowOrNotAtAll) {
  const auto all = begin({"run", "-n", "8", "--", "/bin/sh", "-c", "echo >\"$OUT/up\"; sleep 1000"});
  ASSERT_TRUE(comes("up"));
  const Finished finished = run("0-3", "echo >\"$OUT/ran\"", {"--no-wait"});
  EXPECT_EQ(finished.exit.status, 4) << finished;
  EXPECT_FALSE(folder_.has("ran"));
  all->signal(SIGTERM);
  all->finish(kPatience_s);
  EXPECT_EQ(run("0-20", "true", {"--no-wait"}).exit.status, 0) << "more than there are devices";
}

}  // namespace
}  // namespace remuda::tests
