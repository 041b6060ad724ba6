// Many processes at one pool, some of which die: no device has two owners at any instant, and nothing is left.
//
// Takes two seconds. The test does not rely on the pool's records: each owner makes a mark of its own for each device,
// a symbolic link that only one process can make.
#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "pool/pool.h"
#include "pool/testing/pool.h"
#include "pool/transitions.h"
#include "process/testing/in_child.h"

namespace remuda::pool {
namespace {

using ::testing::IsEmpty;

constexpr int kWorkers = 16;
constexpr double kSeconds = 1;
constexpr double kPatience_s = 20;

const Inventory& stress_box() {
  static const Inventory inventory = test_box(8);
  return inventory;
}

class Worker {
 public:
  Worker(const TestFolder& folder, const process::Say& say, unsigned seed)
      : folder_(folder), say_(say), random_(seed), opened_(Pool::open(folder.path("pool"))) {}

  std::string work() {
    if (!opened_) return opened_.error().message + "\n";
    const double end_s = monotonic_s() + kSeconds;
    while (monotonic_s() < end_s)
      if (const auto outcome = run_one(); !outcome) return outcome.error().message + "\n";
    return "";
  }

 private:
  Pool& pool() { return *opened_; }
  bool chance(int one_in) { return random_() % static_cast<unsigned>(one_in) == 0; }
  void die() { ::kill(::getpid(), SIGKILL); }

  Result<void> run_one() {
    REMUDA_TRY(pool().change([&](PoolState& state) -> Result<void> {
      reap(state, process::is_alive, [](const Job&) { return false; }, {}, wall_s());
      const int count = 1 << random_() % 3;
      REMUDA_ASSIGN(job_, submit(state, test_job(fmt::format("user{}", random_() % 3), count), stress_box(), wall_s()));
      schedule(state, stress_box(), {}, {}, wall_s());
      return {};
    }));
    say_(fmt::format("job {}\n", job_));
    if (chance(30)) die();
    REMUDA_ASSIGN(const auto devices, wait_for_turn());
    for (const auto& device : devices) put_up(device);
    if (chance(30)) die();
    for (const auto& device : devices) ::unlink(folder_.path(device).c_str());
    return pool().change([&](PoolState& state) -> Result<void> {
      end(state, job_, {}, {}, wall_s());
      schedule(state, stress_box(), {}, {}, wall_s());
      return {};
    });
  }

  Result<std::vector<std::string>> wait_for_turn() {
    for (const double end_s = monotonic_s() + kPatience_s; monotonic_s() < end_s;) {
      REMUDA_ASSIGN(const PoolState state, pool().read());
      std::vector<std::string> devices;
      std::vector<process::ProcessId> keepers;
      for (const Lease& lease : state.leases) {
        if (lease.job == job_) devices.push_back(lease.device);
        keepers.push_back(state.find(lease.job)->keeper);
      }
      if (!devices.empty()) return devices;
      if (!std::ranges::all_of(keepers, process::is_alive)) REMUDA_TRY(clear());
      REMUDA_TRY(pool().wait(keepers, 1));
    }
    return failed(fmt::format("job {} waited too long", job_));
  }

  Result<void> clear() {
    return pool().change([&](PoolState& state) -> Result<void> {
      reap(state, process::is_alive, [](const Job&) { return false; }, {}, wall_s());
      schedule(state, stress_box(), {}, {}, wall_s());
      return {};
    });
  }

  /// The mark of a process that died may be removed.
  void put_up(const std::string& device) {
    const std::string path = folder_.path(device), own = std::to_string(::getpid());
    if (::symlink(own.c_str(), path.c_str()) == 0) return;
    char other[32] = {};
    (void)!::readlink(path.c_str(), other, sizeof other - 1);
    if (process::process_id(std::atoi(other))) say_(fmt::format("{} has two owners, {} and {}\n", device, own, other));
    ::unlink(path.c_str());
    (void)!::symlink(own.c_str(), path.c_str());
  }

  const TestFolder& folder_;
  const process::Say& say_;
  std::minstd_rand random_;
  Result<Pool> opened_;
  int64_t job_ = 0;
};

/// Starts a worker, and another in its place when it dies before the time is over; returns all that they reported.
std::string keep_working(const TestFolder& folder, unsigned number) {
  std::string said;
  const double end_s = monotonic_s() + kSeconds;
  for (unsigned life = 0;; ++life) {
    const process::ChildEnd end = process::in_child(
        [&](const process::Say& say) { return Worker(folder, say, 1000 * number + life + 1).work(); });
    said += end.said;
    if (!WIFSIGNALED(end.status) || monotonic_s() >= end_s) return said;
  }
}

TEST(PoolStress, NoDeviceHasTwoOwnersAndNoJobIsLost) {
  const TestFolder folder;
  const auto all = process::in_child([&](const process::Say& say) {
    std::vector<pid_t> keepers;
    for (int number = 0; number < kWorkers; ++number) {
      const pid_t child = ::fork();
      if (child == 0) {
        say(keep_working(folder, static_cast<unsigned>(number)));
        ::_exit(0);
      }
      keepers.push_back(child);
    }
    for (const pid_t keeper : keepers) ::waitpid(keeper, nullptr, 0);
    return std::string();
  });
  auto pool = Pool::open(folder.path("pool"));
  ASSERT_TRUE(pool) << pool.error().message;
  ASSERT_TRUE(pool->change([](PoolState& state) -> Result<void> {
    reap(state, process::is_alive, [](const Job&) { return false; }, {}, wall_s());
    return {};
  }));
  const auto state = pool->read();
  EXPECT_THAT(state->jobs, IsEmpty());
  EXPECT_THAT(state->leases, IsEmpty());

  std::istringstream lines(all.said);
  std::set<int64_t> promised;
  for (std::string line; std::getline(lines, line);) {
    int64_t job = 0;
    if (std::sscanf(line.c_str(), "job %ld", &job) != 1) ADD_FAILURE() << line;
    EXPECT_TRUE(promised.insert(job).second) << job << " was given twice";
    const auto found = pool->find(job);
    EXPECT_TRUE(found && *found && (*found)->state == JobState::ended) << "job " << job << " was lost";
  }
  EXPECT_GT(promised.size(), 10U);  // hundreds on a usual machine
  RecordProperty("jobs", static_cast<int>(promised.size()));
}

}  // namespace
}  // namespace remuda::pool
