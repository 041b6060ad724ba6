// `remuda run` in containers: process ids of their own, one pool.
#include <algorithm>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/program.h"

namespace remuda::tests {
namespace {

constexpr const char* kMachine = REMUDA_MACHINES "/nv-dgx1-v100-8gpu-4nic.json";

/// The command lines it makes run in a pid namespace of their own, where only their own processes are visible.
class Containers : public testing::Test {
 protected:
  void SetUp() override {
    if (tests::run(contained({"true"})).exit.status != 0) GTEST_SKIP() << "may not make pid namespaces here";
  }
  void TearDown() override {
    EXPECT_TRUE(eventually([&] { return leases().empty(); }, kPatience_s)) << "leases are left";
  }

  static std::vector<std::string> contained(const std::vector<std::string>& argv) {
    std::vector<std::string> line{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"};
    std::ranges::copy(argv, std::back_inserter(line));
    return line;
  }
  static std::vector<std::string> job(const std::vector<std::string>& flags, const std::string& script) {
    std::vector<std::string> line{REMUDA_PROGRAM, "run", "-q", "--machine", kMachine};
    std::ranges::copy(flags, std::back_inserter(line));
    std::ranges::copy(std::vector<std::string>{"--", "/bin/sh", "-c", script}, std::back_inserter(line));
    return line;
  }
  process::Environment environment() const {
    return {{"XDG_STATE_HOME", folder_.path("state")}, {"OUT", folder_.path("")}};
  }
  Finished run(const std::vector<std::string>& argv) const { return tests::run(argv, environment()); }
  Json leases() const {
    const Finished ps = run({REMUDA_PROGRAM, "ps", "--json", "--machine", kMachine});
    return parse_json(ps.out, "ps").value_or(Json{})["leases"];
  }
  bool comes(const std::string& file) const {
    return eventually([&] { return folder_.has(file); }, kPatience_s);
  }
  /// Another container holds all devices until the file "leave" exists.
  std::unique_ptr<RunningProgram> hold_all() const {
    return std::make_unique<RunningProgram>(
        contained(job({"-n", "8"}, "touch \"$OUT/holds\"; until [ -e \"$OUT/leave\" ]; do sleep 0.05; done")),
        environment());
  }

  ScratchFolder folder_;
};

TEST_F(Containers, DoNotTakeEachOthersDevices) {
  const auto holder = hold_all();
  ASSERT_TRUE(comes("holds"));
  for (const auto& line : {contained(job({"--no-wait"}, "true")), job({"--no-wait"}, "true")}) {
    const Finished refused = run(line);
    EXPECT_EQ(refused.exit.status, 4) << refused;
  }
  EXPECT_EQ(leases().size(), 8U);
  folder_.write("leave", "");
  EXPECT_EQ(holder->finish().exit.status, 0);
}

TEST_F(Containers, WakeWhoWaitsInAnother) {
  const auto holder = hold_all();
  ASSERT_TRUE(comes("holds"));
  RunningProgram waiter(contained(job({}, "touch \"$OUT/ran\"")), environment());
  folder_.write("leave", "");
  EXPECT_EQ(waiter.finish().exit.status, 0);
  EXPECT_TRUE(folder_.has("ran"));
  EXPECT_EQ(holder->finish().exit.status, 0);
}

TEST_F(Containers, LeaveNothingHeldWhenOneIsKilled) {
  const auto holder = hold_all();
  ASSERT_TRUE(comes("holds"));
  RunningProgram waiter(contained(job({}, "touch \"$OUT/ran\"")), environment());
  holder->signal(SIGKILL);
  holder->finish();
  EXPECT_EQ(waiter.finish().exit.status, 0);
  EXPECT_TRUE(folder_.has("ran"));
}

TEST_F(Containers, KeepTheirDevicesWhileAnOrphanLives) {
  const char* with_orphan = "(touch \"$OUT/holds\"; until [ -e \"$OUT/leave\" ]; do sleep 0.05; done) & wait";
  // Stopped first: a keeper that sees its front die before it is killed itself ends the job, orphan and all.
  const char* kill_front_and_keeper =
      "\"$@\" & front=$!; until [ -e \"$OUT/holds\" ]; do sleep 0.05; done; "
      "both=\"$(cat /proc/$front/task/$front/children) $front\"; "
      "kill -STOP $both; kill -9 $both; touch \"$OUT/killed\"; "
      "until [ -e \"$OUT/leave\" ]; do sleep 0.05; done";
  std::vector<std::string> line{"/bin/sh", "-c", kill_front_and_keeper, "sh"};
  std::ranges::copy(job({"-n", "8"}, with_orphan), std::back_inserter(line));
  RunningProgram holder(contained(line), environment());
  ASSERT_TRUE(comes("killed"));
  EXPECT_EQ(run(contained(job({"--no-wait"}, "true"))).exit.status, 4);
  folder_.write("leave", "");
  holder.finish();
  EXPECT_EQ(run(contained(job({}, "true"))).exit.status, 0);
}

}  // namespace
}  // namespace remuda::tests
