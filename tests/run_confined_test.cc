// `remuda run` where jobs get a cgroup: no process of a job outlives its lease, however it tried to detach, and the
// cgroup is removed with it. Skipped where this user may make none; run_test.cc tests what is guaranteed there.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/program.h"

namespace remuda::tests {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

/// Starts a daemon in the usual way: forked twice, with a session and an environment of its own.
constexpr const char* kDaemon =
    "(env -i setsid sh -c 'echo $$ >\"$0\"; exec sleep 1000' \"$OUT/daemon\" &); echo $$ >\"$OUT/job\"; exec sleep "
    "1000";

class RunConfined : public testing::Test {
 protected:
  void SetUp() override {
    const Finished finished = run({"sh", "-c", "cat /proc/self/cgroup"});
    if (finished.out.find("/remuda-") == std::string::npos) GTEST_SKIP() << "this user may make no cgroup here";
  }

  std::vector<std::string> line(const std::vector<std::string>& command) const {
    std::vector<std::string> argv{REMUDA_PROGRAM, "run", "--machine", kMachine, "-n", "8", "--"};
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }
  process::Environment environment() const {
    return {{"XDG_STATE_HOME", folder_.path("state")}, {"OUT", folder_.path("")}};
  }
  Finished run(const std::vector<std::string>& command) const { return tests::run(line(command), environment()); }

  Json leases() const {
    const Finished ps = tests::run({REMUDA_PROGRAM, "ps", "--json", "--machine", kMachine}, environment());
    return parse_json(ps.out, "ps").value_or(Json{})["leases"];
  }
  pid_t pid_in(const std::string& file) const {
    EXPECT_TRUE(eventually([&] { return folder_.has(file) && folder_.read(file).ends_with('\n'); }, kPatience_s));
    return std::stoi("0" + folder_.read(file));
  }

  /// Runs a job with a daemon, calls `end` for front and keeper, and checks that neither processes nor cgroup are left.
  void expect_nothing_left(const std::function<void(pid_t front, pid_t keeper)>& end) {
    const RunningProgram program(line({"sh", "-c", kDaemon}), environment());
    const pid_t job = pid_in("job"), daemon = pid_in("daemon");
    ASSERT_TRUE(eventually([&] { return !leases().empty() && leases()[0].contains("cgroup"); }, kPatience_s));
    const std::string cgroup = leases()[0]["cgroup"];
    EXPECT_THAT(*read_text(cgroup + "/cgroup.procs"), testing::HasSubstr(fmt::format("{}\n", daemon)));
    const auto keepers = children_of(program.pid());
    ASSERT_THAT(keepers, SizeIs(1));
    end(program.pid(), keepers[0]);
    EXPECT_TRUE(eventually([&] { return leases().empty(); }, kPatience_s));
    EXPECT_TRUE(all_gone({job, daemon}));
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(cgroup); }, kPatience_s));
    ::kill(daemon, SIGKILL);  // so that nothing is left if the test failed
  }

  static constexpr const char* kMachine = REMUDA_MACHINES "/nv-dgx1-v100-8gpu-4nic.json";
  ScratchFolder folder_;
};

TEST_F(RunConfined, EndsWhatForgotItsJobWhenFrontAndKeeperAreKilled) {
  expect_nothing_left([](pid_t front, pid_t keeper) {
    ::kill(front, SIGSTOP);  // so that it cannot help
    ::kill(keeper, SIGKILL);
    ::kill(front, SIGKILL);
  });
}

TEST_F(RunConfined, EndsItWhenTheKeeperIsKilled) {
  expect_nothing_left([](pid_t, pid_t keeper) { ::kill(keeper, SIGKILL); });
}

TEST_F(RunConfined, EndsItWhenTheFrontIsKilled) {
  expect_nothing_left([](pid_t front, pid_t) { ::kill(front, SIGKILL); });
}

TEST_F(RunConfined, LeavesNoCgroupBehind) {
  const Finished finished = run({"sh", "-c", "grep -o 'remuda-[0-9a-f]*-[0-9]*' /proc/self/cgroup | head -1; exit 7"});
  EXPECT_EQ(finished.exit.status, 7) << finished;
  ASSERT_TRUE(finished.out.ends_with('\n')) << finished;
  const std::string name = finished.out.substr(0, finished.out.size() - 1);
  EXPECT_EQ(tests::run({"find", "/sys/fs/cgroup", "-name", name}).out, "");
}

TEST_F(RunConfined, StartsAgainInACgroupOfItsOwn) {
  const std::vector<std::string> command{"sh", "-c",
                                         "grep -q /remuda- /proc/self/cgroup && test -e \"$OUT/once\" || "
                                         "{ touch \"$OUT/once\"; exit 5; }"};
  std::vector<std::string> argv = line(command);
  argv.insert(argv.begin() + 2, {"--restart", "1"});
  EXPECT_EQ(tests::run(argv, environment()).exit.status, 0);
}

TEST(RunUnconfined, GoesOnWithoutAWordWhereNothingIsPermitted) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const ScratchFolder folder;
  const std::vector<std::string> nobody{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  std::filesystem::create_directory(folder.path("state"));
  std::filesystem::permissions(folder.path(""), std::filesystem::perms::all);
  std::filesystem::permissions(folder.path("state"), std::filesystem::perms::all);
  const auto as_nobody = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = nobody;
    argv.emplace_back(REMUDA_PROGRAM);
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return tests::run(argv, {{"XDG_STATE_HOME", folder.path("state")}});
  };
  if (!as_nobody({"--version"}).exit.ok()) GTEST_SKIP() << "the user nobody cannot start remuda from where it is";
  const std::string machine = REMUDA_MACHINES "/nv-dgx1-v100-8gpu-4nic.json";
  const Finished finished =
      as_nobody({"run", "--machine", machine, "--", "sh", "-c", "grep -c /remuda- /proc/self/cgroup; exit 3"});
  EXPECT_EQ(finished.exit.status, 3) << finished;
  EXPECT_EQ(finished.out, "0\n");
  EXPECT_EQ(finished.err, "");
}

}  // namespace
}  // namespace remuda::tests
