// `remuda exec`: a command becomes a part of a job that runs, on its devices and until its end.
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>

#include "base/file.h"
#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::HasSubstr;

constexpr const char* kSleeps = "echo $$ >\"$OUT/job\"; exec sleep 1000";

class Exec : public JobTest {
 protected:
  void SetUp() override {
    const std::string id = job();
    const bool is_held = leases()[0].contains("cgroup");
    const Finished outcome = ask({"exec", id, "--", "true"});
    cancel(id);
    std::filesystem::remove(folder_.path("job"));
    if (is_held) return;
    EXPECT_THAT(outcome.err, HasSubstr("is not held by a cgroup, so nothing can join it"));
    GTEST_SKIP() << "this user may make no cgroup here";
  }
  /// A job with two devices, whose command has begun.
  std::string job() const {
    const std::string job = detach(kSleeps, {"-n", "2"});
    EXPECT_TRUE(comes("job"));
    return job;
  }
  void cancel(const std::string& job) const {
    EXPECT_EQ(ask({"cancel", job}).exit.status, 0);
    EXPECT_TRUE(comes_free());
  }
};

TEST_F(Exec, TheCommandSeesTheDevicesOfTheJobAndItsStatusIsThatOfExec) {
  const std::string id = job();
  const Finished seen = ask({"exec", id, "--", "printenv", "REMUDA_JOB", "REMUDA_DEVICES", "CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(seen.exit.status, 0) << seen.err;
  std::string own;
  for (const char* name : {"REMUDA_JOB", "REMUDA_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
    const std::string environment = *read_text("/proc/" + std::to_string(pid_in("job")) + "/environ");
    const size_t at = ('\0' + environment).find('\0' + std::string(name) + '=') + std::string(name).size() + 1;
    own += environment.substr(at, environment.find('\0', at) - at) + '\n';
  }
  EXPECT_EQ(seen.out, own);
  EXPECT_EQ(ask({"exec", id, "--", "sh", "-c", "exit 7"}).exit.status, 7);
  EXPECT_EQ(ask({"exec", id, "--", "no-such-program"}).exit.status, 127);
  cancel(id);
}

TEST_F(Exec, TheCommandIsHeldWithTheJobAndEndsWithIt) {
  const std::string id = job();
  const auto inside =
      begin({"exec", id, "--", "sh", "-c", "echo $$ >\"$OUT/inside\"; trap '' TERM; sleep 1000 & wait"});
  const pid_t command = pid_in("inside"), own = pid_in("job");
  EXPECT_EQ(command, inside->pid()) << "it takes the place of exec";
  const auto cgroup_of = [](pid_t pid) { return read_text("/proc/" + std::to_string(pid) + "/cgroup").value_or(""); };
  EXPECT_EQ(cgroup_of(command), cgroup_of(own));
  const std::string cgroup = leases()[0]["cgroup"];
  ::kill(own, SIGTERM);
  EXPECT_EQ(inside->finish().exit.signal, SIGKILL);
  EXPECT_TRUE(comes_free());
  EXPECT_FALSE(std::filesystem::exists(cgroup));
}

TEST_F(Exec, OnlyAJobThatRunsIsEntered) {
  EXPECT_THAT(ask({"exec", "77", "--", "true"}).err, HasSubstr("there is no job 77"));
  const std::string id = job();
  EXPECT_THAT(ask({"exec", id}).err, HasSubstr("there is nothing to run; write the command after --"));
  cancel(id);
  const Finished late = ask({"exec", id, "--", "true"});
  EXPECT_EQ(late.exit.status, 2);
  EXPECT_THAT(late.err, HasSubstr("job " + id + " has ended: only one that runs can be entered"));
}

}  // namespace
}  // namespace remuda::tests
