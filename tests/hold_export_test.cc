// eval "$(remuda hold --export)": devices for a shell that is not a child of this process.
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "pool/pool.h"
#include "process/status.h"
#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kStay = "echo $$ >\"$OUT/shell\"; while :; do sleep 0.05; done";

class HoldExport : public JobTest {
 protected:
  std::string remuda(const std::vector<std::string>& arguments) const {
    std::string text;
    for (const std::string& word : line(arguments)) text += shell_word(word) + " ";
    return text;
  }
  /// The line of a script that holds this many devices.
  std::string hold(const std::string& count, const std::string& flag = "--export") const {
    return "eval \"$(" + remuda({"hold", flag, "-n", count}) + ")\" || exit 9\n";
  }
  /// The keeper of job 1.
  pid_t keeper() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path("state"))) {
      if (entry.path().filename() != "pool.db") continue;
      auto pool = pool::Pool::open(entry.path().parent_path());
      const auto job = pool ? pool->find(1) : Result<std::optional<pool::Job>>(std::nullopt);
      if (job && *job) return (*job)->keeper.pid;
    }
    throw std::runtime_error("there is no job 1");
  }
  std::unique_ptr<RunningProgram> shell(const std::string& script, const char* program = "/bin/sh") const {
    return std::make_unique<RunningProgram>(std::vector<std::string>{program, "-c", script}, environment());
  }
};

TEST_F(HoldExport, SetsTheVariablesOfTheShell) {
  for (const char* program : {"/bin/sh", "/bin/bash"}) {
    const std::string script = hold("2") + "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $REMUDA_DEVICES";
    const Finished finished = shell(script, program)->finish(kPatience_s);
    EXPECT_THAT(finished.out, ContainsRegex("^[0-7],[0-7] PCI_BUS_ID gpu:[0-7],gpu:[0-7]\n$")) << finished;
    EXPECT_EQ(finished.err, "");
    EXPECT_TRUE(comes_free()) << "the shell has ended";
  }
}

TEST_F(HoldExport, FindsAPolicyThatIsNamedFromTheFolderOfTheShell) {
  folder_.write("policy.toml", "[queue]\npatience = \"1m\"\n");
  const std::string script = "cd " + folder_.path() + "\nexport REMUDA_POLICY=policy.toml\n" + hold("1") + "echo held";
  EXPECT_EQ(shell(script)->finish(kPatience_s).out, "held\n");
  EXPECT_TRUE(comes_free());
}

TEST_F(HoldExport, GivesBackWhenTheShellIsKilled) {
  const auto program = shell(hold("8") + kStay);
  pid_in("shell");
  EXPECT_THAT(leases(), SizeIs(8));
  EXPECT_EQ(ask({"run", "--no-wait", "--", "true"}).exit.status, 4);
  program->signal(SIGKILL);
  EXPECT_TRUE(comes_free());
  EXPECT_THAT(ask({"why", "1"}).out, HasSubstr("its shell has ended"));
}

TEST_F(HoldExport, WakesWhoWaits) {
  const auto program = shell(hold("8") + kStay);
  pid_in("shell");
  const auto waiter = begin({"run", "-n", "8", "--", "echo", "mine"});
  ASSERT_TRUE(comes_to_wait(1));
  program->signal(SIGKILL);
  EXPECT_EQ(waiter->finish(kPatience_s).out, "mine\n");
}

TEST_F(HoldExport, IsGivenBackByRelease) {
  const auto program = shell(hold("2") + remuda({"release"}) + "&& echo done >\"$OUT/released\"; " +
                             remuda({"release"}) + "; echo $? >\"$OUT/again\"; eval \"$(" +
                             remuda({"hold", "--export"}) + ")\"; eval \"$(" + remuda({"release", "--export"}) +
                             ")\"; echo \"[$CUDA_VISIBLE_DEVICES$REMUDA_JOB]\" >\"$OUT/left\"; " + kStay);
  ASSERT_TRUE(comes("left"));
  EXPECT_EQ(folder_.read("released"), "done\n");
  EXPECT_EQ(folder_.read("again"), "2\n") << "it has ended already";
  EXPECT_EQ(folder_.read("left"), "[]\n");
  EXPECT_TRUE(comes_free());
  EXPECT_TRUE(is_running(pid_in("shell")));
  program->signal(SIGKILL);
}

TEST_F(HoldExport, TakesTheVariablesBackAlsoWhereTheLeaseHasEndedBefore) {
  const std::string script = hold("1") + remuda({"release"}) + "\neval \"$(" + remuda({"release", "--export"}) +
                             ")\"\necho \"[$CUDA_VISIBLE_DEVICES$REMUDA_JOB]\"";
  const Finished finished = shell(script)->finish(kPatience_s);
  EXPECT_EQ(finished.out, "[]\n") << finished;
  EXPECT_THAT(finished.err, HasSubstr("job 1 has ended already"));
}

TEST_F(HoldExport, ReleasesNoJobOfAnotherPool) {
  const auto program = shell(hold("1") + shell_word(REMUDA_PROGRAM) + " release; echo $? >\"$OUT/status\";" + kStay);
  ASSERT_TRUE(comes("status"));
  EXPECT_EQ(folder_.read("status"), "2\n");
  EXPECT_THAT(program->err(), HasSubstr("one of another pool"));
  EXPECT_THAT(leases(), SizeIs(1));
  program->signal(SIGKILL);
  EXPECT_THAT(ask({"release"}).err, HasSubstr("REMUDA_JOB names none here"));
}

TEST_F(HoldExport, WaitsForItsTurnAndSaysWhy) {
  const auto first = shell(hold("8") + kStay);
  pid_in("shell");
  const auto second = shell(hold("8") + "echo $REMUDA_DEVICES");
  ASSERT_TRUE(comes_to_wait(1));
  EXPECT_TRUE(eventually([&] { return second->err().find("job 2 waits: ") != std::string::npos; }, kPatience_s));
  first->signal(SIGKILL);
  const Finished finished = second->finish(kPatience_s);
  EXPECT_THAT(finished.out, HasSubstr("gpu:0,gpu:1,")) << finished;
  EXPECT_THAT(finished.err, HasSubstr("remuda: job 2 starts on")) << finished;
}

TEST_F(HoldExport, LeavesTheQueueWhenInterruptedOrKilledOrItsShellIs) {
  const auto first = shell(hold("8") + kStay);
  pid_in("shell");
  const auto interrupted = begin({"hold", "--export"}), killed = begin({"hold", "--export"});
  const auto program = shell("echo $$ >\"$OUT/second\"; " + hold("1"));
  ASSERT_TRUE(comes_to_wait(3));
  interrupted->signal(SIGINT);
  const Finished finished = interrupted->finish(kPatience_s);
  EXPECT_EQ(finished.exit.status, 128 + SIGINT) << finished;
  EXPECT_EQ(finished.out, "(exit 130);\n");
  EXPECT_TRUE(comes_to_wait(2));
  killed->signal(SIGKILL);
  EXPECT_TRUE(comes_to_wait(1));
  ::kill(pid_in("second"), SIGKILL);
  EXPECT_TRUE(comes_to_wait(0));
  EXPECT_THAT(leases(), SizeIs(8));
  first->signal(SIGKILL);
}

TEST_F(HoldExport, LastsAsLongAsTheShellAndNotItsParts) {
  const auto program = shell("x=$(" + remuda({"hold", "--export"}) + "; cd /) && eval \"$x\"; " + kStay, "/bin/bash");
  pid_in("shell");
  eventually([] { return false; }, 0.3);  // time for a lease that ends with a subshell to end
  EXPECT_THAT(leases(), SizeIs(1));
  program->signal(SIGKILL);
}

TEST_F(HoldExport, MayBeTiedToAnyProcess) {
  RunningProgram other({"sleep", "1000"});
  const Finished finished = ask({"hold", "--export", "--for", std::to_string(other.pid())});
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_THAT(finished.out, HasSubstr("export CUDA_VISIBLE_DEVICES='")) << finished;
  EXPECT_THAT(leases(), SizeIs(1));
  other.signal(SIGKILL);
  other.finish();
  EXPECT_TRUE(comes_free());
}

TEST_F(HoldExport, IsTiedToNoProcessOfAnotherUser) {
  std::unique_ptr<RunningProgram> others;
  if (::getuid() == 0)
    others = std::make_unique<RunningProgram>(
        std::vector<std::string>{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sleep", "1000"});
  const pid_t pid = others ? others->pid() : 1;
  const auto is_others = [&] { return process::sole_user_of(pid) != static_cast<int>(::getuid()); };
  ASSERT_TRUE(eventually(is_others, kPatience_s));
  const Finished refused = ask({"hold", "--export", "--for", std::to_string(pid)});
  EXPECT_EQ(refused.exit.status, 2) << refused;
  EXPECT_THAT(refused.err, HasSubstr(fmt::format("--for: process {} is not yours, but ", pid)));
  EXPECT_THAT(leases(), SizeIs(0));
  if (others) others->signal(SIGKILL);
}

TEST_F(HoldExport, HasATimeLimitAndNeedNotWait) {
  const auto first = shell(hold("8") + kStay);
  pid_in("shell");
  const Finished refused = ask({"hold", "--export", "--no-wait"});
  EXPECT_EQ(refused.exit.status, 4) << refused;
  EXPECT_EQ(refused.out, "(exit 4);\n");
  first->signal(SIGKILL);
  EXPECT_TRUE(comes_free());
  const auto second =
      shell("eval \"$(" + remuda({"hold", "--export", "--time-limit", "1s"}) + ")\"; echo up >\"$OUT/up\"; " + kStay);
  ASSERT_TRUE(comes("up"));
  EXPECT_TRUE(comes_free());
  EXPECT_THAT(ask({"why", "2"}).out, HasSubstr("reached its time limit"));
  second->signal(SIGKILL);
}

TEST_F(HoldExport, HoldsNoFileOfTheShellOpen) {
  const auto program = shell("exec 9>\"$OUT/lock\"; flock 9; " + hold("1") + "exec 9>&-; " +
                             "flock -n \"$OUT/lock\" echo free >\"$OUT/is\"; " + kStay);
  ASSERT_TRUE(comes("is"));
  EXPECT_EQ(folder_.read("is"), "free\n");
  program->signal(SIGKILL);
}

TEST_F(HoldExport, QuotesWhatAMachineFileSays) {
  folder_.write("machine.json", R"({"version": 1, "host": "lab", "devices": [{"id": "gpu:0", "kind": "gpu", "index": 0,
    "vendor": "NVIDIA", "uuid": "$(touch hit) '; touch hit; echo ' \"`touch hit`"}]})");
  const std::string hold = shell_word(REMUDA_PROGRAM) + " hold --export --machine machine.json";
  const auto program = shell("cd $OUT && eval \"$(" + hold + ")\" && echo \"$CUDA_VISIBLE_DEVICES\"");
  EXPECT_EQ(program->finish(kPatience_s).out, "$(touch hit) '; touch hit; echo ' \"`touch hit`\n");
  EXPECT_FALSE(folder_.has("hit"));
}

TEST_F(HoldExport, EndsWhatCarriesItsNumberWhenItsKeeperIsKilled) {
  // The shell stays without starting programs, each of which would carry the number, too.
  const auto program = shell(hold("8") +
                             "sleep 1000 & echo $! >\"$OUT/back\"; mkfifo \"$OUT/never\"; "
                             "echo $$ >\"$OUT/shell\"; read line <\"$OUT/never\"");
  const pid_t back = pid_in("back");
  pid_in("shell");
  ::kill(keeper(), SIGKILL);
  EXPECT_TRUE(comes_free());
  EXPECT_TRUE(eventually([&] { return !is_running(back); }, kPatience_s)) << "it uses devices that others get now";
  EXPECT_TRUE(is_running(pid_in("shell")));
  program->signal(SIGKILL);
}

TEST_F(HoldExport, LetsEvalFailAsItDid) {
  for (const char* program : {"/bin/sh", "/bin/bash"}) {
    const Finished finished =
        shell("eval \"$(" + remuda({"hold", "--export", "-n", "9"}) + ")\"; echo $?", program)->finish();
    EXPECT_EQ(finished.out, "3\n") << finished;
    EXPECT_THAT(finished.err, HasSubstr("9 are wanted")) << finished;
  }
}

TEST_F(HoldExport, RefusesWhatItCannotDo) {
  EXPECT_EQ(ask({"hold", "--export", "-n", "9"}).exit.status, 3);
  EXPECT_EQ(ask({"hold", "--export", "--", "zsh"}).exit.status, 2);
  EXPECT_EQ(ask({"hold", "--for", "1"}).exit.status, 2);
  EXPECT_EQ(ask({"hold", "--export", "--for", "0"}).exit.status, 2);
  EXPECT_EQ(ask({"hold", "--export", "--for", "99999999"}).exit.status, 2);
}

}  // namespace
}  // namespace remuda::tests
