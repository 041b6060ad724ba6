#include "run/adopt.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "process/status.h"
#include "process/testing/child_output.h"
#include "process/tree.h"
#include "process/user_name.h"

namespace remuda::run {
namespace {

using testing::HasSubstr;

class Adoptable : public testing::Test {
 protected:
  static process::ProcessId id_of(const process::ChildProcess& child) {
    return process::process_id(child.pid()).value();
  }
  std::string refusal(const process::ProcessId& process) const {
    const auto checked = check_adoptable(process, machine_, false);
    return checked ? "" : checked.error().message;
  }
  /// A machine with one GPU, which these processes use.
  void use(const std::vector<int>& pids) {
    Device gpu{.id = "GPU-0", .kind = DeviceKind::gpu, .index = 0};
    std::vector<Process> processes;
    for (const int pid : pids) processes.push_back({.pid = pid});
    gpu.status.processes = std::move(processes);
    machine_.devices = {gpu};
  }
  Inventory machine_;
};

TEST_F(Adoptable, IsOnesOwnProcessThatUsesNoDevice) {
  const process::ChildProcess child = process::family();
  use({::getppid()});
  EXPECT_EQ(refusal(id_of(child)), "");
}

TEST_F(Adoptable, IsNoneThatHasEnded) {
  process::ProcessId gone = process::own_process_id();
  gone.start_ticks += 1;
  EXPECT_EQ(refusal(gone), "there is no process " + std::to_string(::getpid()));
}

TEST_F(Adoptable, IsNoneThatUsesADeviceNorWhoseChildDoes) {
  const process::ChildProcess child = process::family();
  const auto descendants = process::all_descendants(child.pid());
  ASSERT_FALSE(descendants.empty());
  use({child.pid()});
  EXPECT_THAT(refusal(id_of(child)), HasSubstr(" has opened gpu:0 already; only one that has opened no device"));
  use({descendants.front().pid});
  EXPECT_THAT(refusal(id_of(child)),
              HasSubstr("process " + std::to_string(descendants.front().pid) + " has opened gpu:0"));
}

TEST_F(Adoptable, IsNoneOfAJob) {
  const process::ChildProcess child = process::family({{"REMUDA_JOB", "12"}});
  EXPECT_EQ(refusal(id_of(child)), "process " + std::to_string(child.pid()) + " is a part of job 12 already");
}

TEST_F(Adoptable, IsNoneOfAnotherUser) {
  if (::geteuid() != 0) {
    EXPECT_THAT(refusal(process::process_id(1).value()), HasSubstr("process 1 belongs to root, who alone may"));
    return;
  }
  constexpr int kNobody = 65534;
  const process::ChildProcess child = process::family();
  ASSERT_EQ(::seteuid(kNobody), 0);
  const auto user = process::sole_user_of(::getpid());
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(user, std::nullopt) << "it had the rights of two";
  EXPECT_EQ(process::sole_user_of(child.pid()), 0);
}

}  // namespace
}  // namespace remuda::run
