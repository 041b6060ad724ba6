#include "pool/claim.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/env.h"
#include "base/testing/scratch_folder.h"
#include "pool/machine_view.h"
#include "process/abstract_socket.h"
#include "process/testing/in_child.h"
#include "process/user_name.h"

namespace remuda::pool {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Two pools of a machine with two GPUs and a CPU.
class Claims : public ::testing::Test {
 protected:
  Claims() {
    ::setenv(env::claims.name, folder_.path("").c_str(), 1);
    for (const std::string& pool : {ours, theirs}) std::filesystem::create_directory(pool);
    machine.devices = {{.id = "GPU-0", .kind = DeviceKind::gpu},
                       {.id = "GPU-1", .kind = DeviceKind::gpu, .index = 1},
                       {.id = "cpu:0", .kind = DeviceKind::cpu}};
  }
  ~Claims() override { ::unsetenv(env::claims.name); }

  /// Ids of the devices that others have, for a job of that pool.
  std::vector<std::string> held_for(const std::string& pool) const {
    std::vector<std::string> ids;
    for (const place::Held& held : claimed_by_others(pool, machine)) ids.push_back(held.device);
    return ids;
  }

  ScratchFolder folder_;
  const std::string ours = folder_.path("ours"), theirs = folder_.path("theirs");
  Inventory machine;
};

TEST_F(Claims, AreSeenByOtherPoolsAndNotByTheirOwn) {
  const auto claim = Claim::take(ours, {"GPU-1", "cpu:0"});
  ASSERT_TRUE(claim) << claim.error().why;
  EXPECT_THAT(claim->fds(), SizeIs(1)) << "CPU devices are not claimed";
  EXPECT_THAT(held_for(ours), IsEmpty());
  const auto held = claimed_by_others(theirs, machine);
  ASSERT_THAT(held, SizeIs(1));
  EXPECT_EQ(held[0].device, "GPU-1");
  EXPECT_EQ(held[0].share, 1);
  EXPECT_EQ(held[0].holder, fmt::format("{} (a job of another pool, process {})",
                                        process::user_name(static_cast<int>(::getuid())), ::getpid()));
}

TEST_F(Claims, AreForOnePoolAtATime) {
  auto claim = Claim::take(ours, {"GPU-0"});
  ASSERT_TRUE(claim);
  const auto refused = Claim::take(theirs, {"GPU-1", "GPU-0"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().device, "GPU-0");
  EXPECT_THAT(held_for(ours), IsEmpty()) << "all or none";
  claim = Claim{};
  EXPECT_TRUE(Claim::take(theirs, {"GPU-1", "GPU-0"}));
}

TEST_F(Claims, OfPartsOfADeviceInOnePoolDoNotStandInEachOthersWay) {
  const auto first = Claim::take(ours, {"GPU-0"});
  ASSERT_TRUE(first);
  const auto second = process::in_child([&](const process::Say&) -> std::string {
    const auto claim = Claim::take(ours, {"GPU-0"});
    return claim ? "claimed too" : claim.error().why;
  });
  EXPECT_EQ(second.said, "claimed too");
}

/// Any user may hold the name of a claim that another process is about to make, if he can guess it.
TEST_F(Claims, HaveNamesThatCannotBeTakenBeforehand) {
  const auto name_of_claim = [] {
    const auto held = process::held_names("remuda-claim");
    std::vector<std::string> names;
    for (const process::HeldName& one : held.value())
      if (one.name.find(fmt::format(".{}.", ::getpid())) != std::string::npos) names.push_back(one.name);
    return names;
  };
  auto first = Claim::take(ours, {"GPU-0"});
  ASSERT_TRUE(first);
  const auto names = name_of_claim();
  ASSERT_THAT(names, SizeIs(1));
  first = Claim{};
  const auto taken = process::hold_name(names.front());
  ASSERT_TRUE(taken);
  const auto second = Claim::take(ours, {"GPU-0"});
  ASSERT_TRUE(second) << second.error().why;
  EXPECT_THAT(name_of_claim(), SizeIs(2));
}

TEST_F(Claims, EndWithTheLastProcessThatHasThem) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd waited_for(ends[0]);
  Fd job_lives(ends[1]);
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    const auto claim = Claim::take(ours, {"GPU-0"});
    if (::fork() != 0) ::kill(::getpid(), claim ? SIGKILL : SIGABRT);
    job_lives.reset();  // the job, which has inherited the claim, lives until the test closes the pipe
    char byte;
    ::_exit(static_cast<int>(::read(waited_for.get(), &byte, 1)));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(keeper, &status, 0), keeper);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(held_for(theirs), std::vector<std::string>{"GPU-0"});
  job_lives.reset();
  while (!held_for(theirs).empty()) std::this_thread::yield();
}

TEST_F(Claims, OfOneFolderAreOfOnePoolWhateverItsPath) {
  std::filesystem::create_directory_symlink(ours, folder_.path("link"));
  const auto claim = Claim::take(ours, {"GPU-0"});
  ASSERT_TRUE(claim);
  EXPECT_THAT(held_for(folder_.path("link")), IsEmpty());
}

TEST_F(Claims, WorkForIdsThatAreNoWords) {
  machine.devices[0].id = "gpu 0\n" + std::string(200, 'x');
  const auto claim = Claim::take(ours, {machine.devices[0].id});
  ASSERT_TRUE(claim) << claim.error().why;
  EXPECT_EQ(held_for(theirs), std::vector{machine.devices[0].id});
}

/// Each pool tries again and again; at no time may both have the device.
TEST_F(Claims, NeverGoToTwoPoolsAtTheSameMoment) {
  constexpr int kRounds = 50;
  const std::string taken = folder_.path("taken");
  const auto contend = [&](const std::string& pool) {
    return process::in_child([&](const process::Say&) -> std::string {
      for (int round = 0; round < kRounds; ++round) {
        const auto claim = Claim::take(pool, {"GPU-0"});
        if (!claim) continue;
        if (!std::filesystem::create_directory(taken)) return "two pools have it";
        std::this_thread::yield();
        std::filesystem::remove(taken);
      }
      return "done";
    });
  };
  const auto first = process::in_child([&](const process::Say&) -> std::string {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(contend(theirs).said == "done" ? 0 : 1);
    const std::string said = contend(ours).said;
    int status = 0;
    return ::waitpid(child, &status, 0) == child && status == 0 ? said : "two pools have it";
  });
  EXPECT_EQ(first.said, "done");
}

/// Any user makes them: whoever only says that a device is theirs keeps nobody from it.
TEST_F(Claims, MeanNothingToAnAgentOfRoot) {
  const auto claim = Claim::take(theirs, {"GPU-0"});
  ASSERT_TRUE(claim) << claim.error().why;
  EXPECT_FALSE(Claim::take(ours, {"GPU-0"}));
  EXPECT_TRUE(Claim::take(ours, {"GPU-0"}, OthersClaims::mean_nothing)) << "a keeper whose job the agent has started";
  const auto held_in_view = [this](OthersClaims others) {
    const auto view = MachineView::open(
        ours, [this] { return Result<Inventory>(machine); }, [] { return Result<Policy>(); }, true, nullptr, others);
    EXPECT_TRUE(view);
    return view->held_without_lease({});
  };
  EXPECT_THAT(held_in_view(OthersClaims::count), SizeIs(1));
  EXPECT_THAT(held_in_view(OthersClaims::mean_nothing), IsEmpty());
  machine.devices[0].status.processes = std::vector<Process>{{.pid = 1, .type = "compute"}};
  EXPECT_THAT(held_in_view(OthersClaims::mean_nothing), SizeIs(1)) << "use counts";
}

}  // namespace
}  // namespace remuda::pool
