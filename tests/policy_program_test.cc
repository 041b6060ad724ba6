// `remuda policy`, and what one does to jobs; `remuda drain` and `undrain`.
#include <filesystem>
#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class PolicyProgram : public JobTest {
 protected:
  process::Environment environment() const override {
    process::Environment environment = JobTest::environment();
    if (folder_.has("policy.toml")) environment.emplace_back("REMUDA_POLICY", path());
    return environment;
  }
  std::string path() const { return folder_.path("policy.toml"); }
  void write_policy(const std::string& text) const {
    folder_.write("policy.toml", text);
    std::filesystem::permissions(path(), std::filesystem::perms(0644));
  }
};

TEST_F(PolicyProgram, IsCheckedAndShown) {
  EXPECT_EQ(
      ask({"policy", "show"}).out,
      "This pool has no policy: everybody may have everything; under an agent, only root gives priorities above 0\n");
  write_policy("[[limit]]\ndevices = 2\n[[reservation]]\ndevices = [\"gpu:99\"]\nusers = [\"ada\"]\n");
  EXPECT_THAT(
      ask({"policy", "check"}).out,
      AllOf(HasSubstr(path() + " can be used; it has limits: 1, reservations: 1\n"), HasSubstr("no device 'gpu:99'")));
  EXPECT_THAT(ask({"policy", "check"}).out,
              HasSubstr(path() + ":3: this machine has no user 'ada'; nobody has the rule"));
  EXPECT_THAT(ask({"policy", "show"}).out, HasSubstr(path() + ":2: everybody may have 2 devices at once\n"));
  write_policy("[idle]\nwarn_after = \"30m\"\nexempt_groups = [\"no-such\"]\n");
  EXPECT_THAT(ask({"policy", "check"}).out, HasSubstr(path() + ":1: this machine has no group 'no-such'"));
  write_policy("[[limit]]\ndevices = true\n");
  const Finished wrong = ask({"policy", "check"});
  EXPECT_EQ(wrong.exit.status, 2);
  EXPECT_EQ(wrong.err, "remuda: " + path() + ":2: limit.devices is true; it must be an integer from 0 to 256\n");
}

/// root is bound by no limit, so the reservation is the rule that a test as root can see.
TEST_F(PolicyProgram, KeepsReservedDevicesForOthers) {
  write_policy(
      "[[reservation]]\ndevices = [\"gpu:0\", \"gpu:1\", \"gpu:2\", \"gpu:3\", \"gpu:4\", \"gpu:5\", \"gpu:6\"]\n"
      "users = [\"nobody-of-that-name\"]\n");
  const Finished one = ask({"run", "--", "/bin/sh", "-c", "echo $REMUDA_DEVICES"});
  EXPECT_EQ(one.exit.status, 0) << one;
  const Finished two = ask({"run", "-n", "2", "--no-wait", "--", "true"});
  EXPECT_EQ(two.exit.status, 4) << two;
  EXPECT_THAT(two.err, HasSubstr("is reserved for nobody-of-that-name (" + path() + ":1)"));
  const Finished tried = ask({"run", "-n", "2", "--dry-run", "--", "true"});
  EXPECT_EQ(tried.exit.status, 4) << "what could not start is not promised" << tried;
  EXPECT_THAT(tried.err, HasSubstr("is reserved for nobody-of-that-name (" + path() + ":1)"));
  const Finished last = ask({"run", "--dry-run", "--", "true"});
  EXPECT_EQ(last.exit.status, 0);
  EXPECT_THAT(last.out, HasSubstr("gpu:7")) << "the one that is not reserved";
  const std::string waits = detach("true", {"-n", "2"});
  EXPECT_THAT(ask({"queue"}).out, HasSubstr("reserved for nobody-of-that-name"));
  EXPECT_THAT(ask({"why", waits}).out, HasSubstr("is reserved for nobody-of-that-name"));
  EXPECT_EQ(ask({"cancel", waits}).exit.status, 0);
}

/// What binds users other than root.
class PolicyForUsers : public PolicyProgram {
 protected:
  void SetUp() override {
    if (::getuid() != 0) return;
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    std::filesystem::create_directory(folder_.path("user"));
    ASSERT_EQ(::chown(folder_.path("user").c_str(), kNobody, kNobody), 0);
    if (const Finished tried = run(as_user({line({"policy"}).front(), "--version"}), {}); tried.exit.status != 0)
      GTEST_SKIP() << "another user cannot run the program that was built here: " << tried.err;
  }
  /// As root, by another user with a pool of its own.
  Finished ask_as_user(const std::vector<std::string>& arguments) const {
    process::Environment environment = this->environment();
    if (::getuid() == 0) {
      std::erase_if(environment, [](const auto& variable) { return variable.first == "XDG_STATE_HOME"; });
      environment.emplace_back("XDG_STATE_HOME", folder_.path("user"));
    }
    return run(as_user(line(arguments)), environment);
  }

 private:
  static constexpr uid_t kNobody = 65534;
  static std::vector<std::string> as_user(std::vector<std::string> words) {
    if (::getuid() == 0) words.insert(words.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
    return words;
  }
};

TEST_F(PolicyForUsers, RefusesInOneSentenceWhichNamesTheRule) {
  write_policy("[[limit]]\npriority = 0\n");
  const Finished run = ask_as_user({"run", "--priority", "5", "--", "true"});
  EXPECT_EQ(run.exit.status, 2) << run;
  EXPECT_THAT(run.err, HasSubstr("may give priority 0 at the most, not 5 (" + path() + ":2)"));
  EXPECT_EQ(ask_as_user({"run", "--", "true"}).exit.status, 0);
}

TEST_F(PolicyForUsers, ADryRunIsRefusedAsTheJobWouldBeAlsoWhereNothingIsFree) {
  write_policy("[[limit]]\npriority = 0\n");
  EXPECT_EQ(ask_as_user({"run", "-d", "-n", "8", "--", "sleep", "1000"}).out, "1\n");
  const Finished tried = ask_as_user({"run", "--dry-run", "--priority", "5", "--", "true"});
  EXPECT_EQ(tried.exit.status, 2) << tried;
  EXPECT_THAT(tried.err, HasSubstr("may give priority 0 at the most, not 5 (" + path() + ":2)"));
  EXPECT_EQ(ask_as_user({"run", "--dry-run", "--", "true"}).exit.status, 4);
  EXPECT_EQ(ask_as_user({"cancel", "1"}).exit.status, 0);
}

TEST_F(PolicyForUsers, EndsAJobByTheTimeLimitThatItIsGiven) {
  write_policy("[[limit]]\ndefault = \"1s\"\n");
  const Finished run = ask_as_user({"run", "--grace", "0", "--", "sleep", "1000"});
  EXPECT_FALSE(run.timed_out);
  EXPECT_THAT(run.err, HasSubstr("reached its time limit of 1 s")) << run;
}

TEST_F(PolicyForUsers, NamesNoTimeAtWhichAJobAtItsUsersLimitWouldStart) {
  write_policy("[[limit]]\ndevices = 7\n");
  EXPECT_EQ(ask_as_user({"run", "-d", "-n", "1", "--time-limit", "1h", "--", "sleep", "1000"}).out, "1\n");
  EXPECT_EQ(ask_as_user({"run", "-d", "-n", "6", "--", "sleep", "1000"}).out, "2\n");
  EXPECT_EQ(ask_as_user({"run", "-d", "-n", "2", "--", "true"}).out, "3\n");
  const std::string why = ask_as_user({"why", "3"}).out;
  EXPECT_THAT(why, HasSubstr("may have 7 devices at once"));
  EXPECT_THAT(why, HasSubstr("earliest    not known: ")) << "two devices are free then, but its user has six";
  EXPECT_EQ(ask_as_user({"cancel", "1", "2", "3"}).exit.status, 0);
}

TEST_F(PolicyProgram, StartsNothingWhileItsFileIsWrong) {
  write_policy("[[limit]]\ndevices = true\n");
  const std::vector<std::vector<std::string>> ways{{"run", "--", "true"}, {"run", "--dry-run", "--", "true"}};
  for (const auto& way : ways) {
    const Finished run = ask(way);
    EXPECT_EQ(run.exit.status, 2) << run;
    EXPECT_THAT(run.err, HasSubstr("limit.devices is true"));
  }
  EXPECT_EQ(ask({"ps"}).exit.status, 0) << "who looks may look";
}

TEST_F(PolicyProgram, IsTheReasonOfThoseWhoWaitWhileItsFileIsWrong) {
  write_policy("");
  const std::string runs = detach("exec sleep 1000", {"-n", "8"}), waits = detach("true", {"-n", "1"});
  ASSERT_TRUE(comes_to_wait(1));
  write_policy("[[limit]]\ndevices = true\n");
  EXPECT_EQ(ask({"pause", waits}).exit.status, 0);
  EXPECT_EQ(ask({"resume", waits}).exit.status, 0) << "a look at the queue";
  const std::string reason = "no job starts while the policy is wrong: " + path() + ":2: limit.devices is true";
  EXPECT_THAT(ask({"why", waits}).out, HasSubstr(reason));
  EXPECT_THAT(ask({"why", waits}).out, Not(HasSubstr("is held by")));
  EXPECT_THAT(ask({"queue"}).out, HasSubstr(reason));
  write_policy("");
  EXPECT_EQ(ask({"cancel", runs}).exit.status, 0);
  EXPECT_EQ(ask({"wait", waits}).exit.status, 0);
}

TEST_F(PolicyProgram, ADrainedDeviceShowsItsReasonEverywhere) {
  ASSERT_EQ(ask({"drain", "gpu:3", "--reason", "its fan is broken"}).exit.status, 0);
  EXPECT_THAT(ask({"list"}).out, HasSubstr("gpu:3 is drained: its fan is broken ("));
  EXPECT_THAT(ask({"ps"}).out, HasSubstr("its fan is broken"));
  EXPECT_THAT(ask({"place", "-n", "7", "--explain"}).out, HasSubstr("gpu:3 is drained: its fan is broken"));
  const Finished all = ask({"run", "-n", "8", "--no-wait", "--", "true"});
  EXPECT_EQ(all.exit.status, 4) << all;
  EXPECT_THAT(all.err, HasSubstr("gpu:3 is drained: its fan is broken"));
  const std::string job = detach("exit 0", {"-n", "8"});
  ASSERT_TRUE(comes_to_wait(1));
  EXPECT_THAT(ask({"why", job}).out, HasSubstr("is drained: its fan is broken"));
  EXPECT_EQ(ask({"undrain", "gpu:3"}).exit.status, 0);
  EXPECT_EQ(ask({"wait", job}).exit.status, 0);
  EXPECT_THAT(ask({"list"}).out, Not(HasSubstr("drained")));
  EXPECT_EQ(ask({"undrain", "gpu:3"}).exit.status, 2);
  EXPECT_EQ(ask({"drain", "gpu:3,gpu:4", "--reason", "moved"}).exit.status, 0) << "as --device takes them";
  EXPECT_EQ(ask({"undrain", "gpu:3,gpu:4"}).exit.status, 0);
}

}  // namespace
}  // namespace remuda::tests
