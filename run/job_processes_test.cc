#include "run/job_processes.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/testing/scratch_folder.h"
#include "process/testing/in_child.h"

namespace remuda::run {
namespace {

constexpr double kCrewPatience_s = 30;

/// Writes each signal that it receives into the file FILE, and ends at SIGWINCH. Of two pending signals a shell handles
/// the one with the lower number first, and SIGWINCH has a higher number than SIGTERM.
std::string listener(const std::string& file) {
  return "trap 'echo term >>" + file + "' TERM; trap 'echo winch >>" + file + "; exit' WINCH; echo ready >>" + file +
         "; while :; do sleep 0.05; done";
}

class CrewTest : public testing::Test {
 protected:
  bool comes(const std::string& file, const std::string& text) const {
    const double end_s = monotonic_s() + kCrewPatience_s;
    while (!folder_.has(file) || folder_.read(file) != text) {
      if (monotonic_s() > end_s) return false;
      steady_clock().sleep_s(0.01);
    }
    return true;
  }
  /// In a process that has no other children; "" where all went as it should.
  std::string in_subreaper(const std::function<std::string(JobProcesses&)>& work) const {
    const auto end = process::in_child([&](const process::Say&) {
      ::prctl(PR_SET_CHILD_SUBREAPER, 1);
      JobProcesses processes;
      std::string said = work(processes);
      processes.kill(kCrewPatience_s);
      return said;
    });
    return end.said;
  }

  ScratchFolder folder_;
};

TEST_F(CrewTest, AMemberHearsASignalInAGroupOfItsOwn) {
  EXPECT_EQ(in_subreaper([&](JobProcesses& processes) {
              const process::ProcessSpec spec{.argv = {"setsid", "/bin/sh", "-c", listener(folder_.path("member"))},
                                              .group = ::getpgrp()};
              if (!processes.add(spec) || !comes("member", "ready\n")) return "it does not start";
              processes.signal(SIGTERM);
              return comes("member", "ready\nterm\n") ? "" : "it does not receive the signal";
            }),
            "");
}

TEST_F(CrewTest, OthersInAGroupOfTheirOwnHearOnlyWhatIsForAll) {
  const std::string other = folder_.path("other");
  const std::string script = "setsid /bin/sh -c \"" + listener(other) + "\" & " + listener(folder_.path("member"));
  EXPECT_EQ(in_subreaper([&](JobProcesses& processes) {
              if (!processes.add({.argv = {"/bin/sh", "-c", script}})) return "it does not start";
              if (!comes("member", "ready\n") || !comes("other", "ready\n")) return "it does not run";
              processes.signal(SIGTERM);
              if (!comes("member", "ready\nterm\n")) return "the member does not receive the signal";
              processes.signal_all(SIGWINCH);
              return comes("member", "ready\nterm\nwinch\n") && comes("other", "ready\nwinch\n") ? "" : "others";
            }),
            "");
}

}  // namespace
}  // namespace remuda::run
