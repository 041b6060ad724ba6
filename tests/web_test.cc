// remuda web: what the page gets of a live pool is what `remuda list` and `remuda ps` print.
#include <cstdlib>
#include <gmock/gmock.h>
#include <unistd.h>

#include "cli/watch/live_source.h"
#include "cli/watch/watch_loop.h"
#include "process/user_name.h"
#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kUntilEnd = "touch \"$OUT/runs\"; while [ ! -e \"$OUT/end\" ]; do sleep 0.05; done";

class Web : public JobTest {
 protected:
  /// This process looks into the same pool as the programs.
  void SetUp() override {
    for (const auto& [name, value] : environment()) ::setenv(name.c_str(), value.c_str(), 1);
  }
  void TearDown() override {
    JobTest::TearDown();
    for (const auto& [name, value] : environment()) ::unsetenv(name.c_str());
  }
  Json seen_by(const std::string& user) const {
    cli::LiveSource source({.file = machine()[1]}, cli::watch_folder(machine()[1]).value(), user);
    return source.snapshot().value();
  }
  static std::string me() { return process::user_name(static_cast<int>(::geteuid())); }
};

/// Without what passes with time.
Json timeless(Json leases) {
  for (Json& lease : leases) lease.erase("cgroup"), lease.erase("use");
  return leases;
}

TEST_F(Web, ShowsWhatTheCommandsPrint) {
  detach(kUntilEnd, {"-n", "2", "--name", "fit"});
  detach(kUntilEnd, {"-n", "8"});
  ASSERT_TRUE(comes_to_wait(1));
  const Json seen = seen_by(me());
  Json listed = parse_json(ask({"list", "--json"}).out, "list").value();
  EXPECT_EQ(listed["leases"].size(), 2u);
  listed.erase("leases");
  EXPECT_EQ(seen["inventory"], listed);
  EXPECT_EQ(timeless(seen["jobs"]["leases"]), timeless(leases()));
  Json waiting = seen["jobs"]["waiting"];
  const Json why = parse_json(ask({"why", "2", "--json"}).out, "why").value()["jobs"][0];
  EXPECT_EQ(waiting[0].value("would_start", Json("none")), why.value("would_start", Json()));
  waiting[0].erase("would_start");
  EXPECT_EQ(waiting[0].erase("starts_unknown"), 1U) << "the other job has no time limit";
  EXPECT_EQ(waiting, pool()["waiting"]);
  EXPECT_EQ(seen["jobs"]["leases"].size(), 2u);
  EXPECT_EQ(seen["jobs"]["leases"][0]["name"], "fit");
  ask({"cancel", "2"});
  folder_.write("end", "");
  EXPECT_TRUE(comes_free());
  const Json after = seen_by(me());
  EXPECT_EQ(after["past"].size(), 2u) << "two devices of the job that ran";
  EXPECT_GE(after["past"][0]["ended_s"], after["past"][0]["since_s"]);
}

TEST_F(Web, HidesCommandsOfOthers) {
  detach(kUntilEnd, {"-n", "1"});
  const Json own = seen_by(me()), of_other = seen_by("somebody-else");
  EXPECT_THAT(to_line(own["jobs"]), HasSubstr("touch"));
  EXPECT_EQ(to_line(of_other).find("touch"), std::string::npos);
  EXPECT_EQ(of_other["jobs"]["leases"][0]["user"], me());
  folder_.write("end", "");
  EXPECT_TRUE(comes_free());
}

TEST_F(Web, HistoryOfALiveMachineIsUnknownAndNotZero) {
  cli::LiveSource source({.file = machine()[1]}, cli::watch_folder(machine()[1]).value(), me());
  const std::string device = source.snapshot().value()["inventory"]["devices"][0]["id"];
  const auto history = source.history({"", device, {"busy"}, 1, 3, 2});
  ASSERT_TRUE(history) << history.error().message;
  EXPECT_EQ(history->measures[0].second, (snapshot::Series{std::nullopt, std::nullopt}));
}

TEST_F(Web, ADeviceThatIsNotThereHasNoHistory) {
  cli::LiveSource source({.file = machine()[1]}, cli::watch_folder(machine()[1]).value(), me());
  EXPECT_THAT(source.history({"", "gpu:99", {"busy"}, 1, 3, 2}).error().message, HasSubstr("no device 'gpu:99'"));
}

TEST_F(Web, IsServedToUsersAndNotByRoot) {
  if (::geteuid() == 0) {
    const Finished finished = ask({"web", "--listen", "127.0.0.1:0"});
    EXPECT_EQ(finished.exit.status, 2);
    EXPECT_THAT(finished.err, StartsWith("remuda: the page is not served by root"));
    return;
  }
  const auto served = begin({"web", "--listen", "127.0.0.1:0"});
  ASSERT_TRUE(eventually([&] { return served->out().ends_with("\n"); }, kPatience_s));
  EXPECT_THAT(served->out(), StartsWith("http://127.0.0.1:"));
  served->signal(SIGTERM);
  EXPECT_EQ(served->finish(kPatience_s).exit.status, 0);
}

TEST_F(Web, AnAddressThatIsNoneIsRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root is refused before";
  EXPECT_THAT(ask({"web", "--listen", "somewhere"}).err, HasSubstr("write one such as 127.0.0.1:8790"));
}

}  // namespace
}  // namespace remuda::tests
