#include "cli/jobs/queue.h"

#include <gmock/gmock.h>

#include "base/table.h"

namespace remuda::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kNow_s = 1'000'000;

pool::Job job(int64_t id, pool::JobState state, const std::string& name = "") {
  pool::Job job;
  job.id = id;
  job.user = "alice";
  job.name = name;
  job.state = state;
  job.submitted_s = kNow_s - 90;
  job.command = {"sleep", "100"};
  job.why = "1 is wanted, and 0 of the 2 GPUs that suit are free";
  return job;
}

/// Two GPUs, of which job 1 has one and somebody without a lease the other.
Inventory shared_machine() {
  Inventory inventory{.host = "box"};
  for (int i = 0; i < 2; ++i)
    inventory.devices.push_back({.id = "GPU-" + std::to_string(i), .kind = DeviceKind::gpu, .index = i});
  return inventory;
}

pool::PoolState state(const std::string& name = "") {
  pool::PoolState state;
  state.jobs = {job(1, pool::JobState::running, name), job(2, pool::JobState::waiting)};
  state.leases = {{.job = 1, .device = "GPU-0", .share = 0.5, .since_s = kNow_s - 5, .until_s = kNow_s + 60}};
  return state;
}

const std::vector<place::Held> kForeign{{.device = "GPU-1", .holder = "bob (process 7: a\tb)"}};

TEST(LeasesText, HasTheHostOnceForAJob) {
  pool::PoolState both = state();
  both.leases = {{.job = 1, .device = "GPU-0"}, {.job = 1, .device = "GPU-1"}};
  both.jobs[0].cores = {0, 1, 2};
  both.jobs[0].request.cores = 3;
  both.jobs[0].request.host_memory_bytes = int64_t{16} << 30;
  const std::string text = leases_text(both, {}, shared_machine(), kNow_s, 200);
  EXPECT_THAT(text, testing::HasSubstr("HOST"));
  const size_t first = text.find("3 cores, 16 GiB");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("3 cores, 16 GiB", first + 1), std::string::npos) << text;
  both.jobs[0].host = {.cores = "cpuset", .memory = true, .why = ""};
  const Json lease = pool_json(both, {}, shared_machine(), kNow_s, {})["leases"][0];
  EXPECT_EQ(lease["cores"], (Json{0, 1, 2}));
  EXPECT_EQ(lease["host_memory_bytes"], int64_t{16} << 30);
  EXPECT_EQ(lease["host"]["cores"], "cpuset");
}

TEST(LeasesText, HasALineForEachDevice) {
  Inventory machine = shared_machine();
  machine.devices[0].memory_bytes = int64_t{48} << 30;
  machine.devices[0].status.memory_used_bytes = int64_t{12} << 30;
  machine.devices[0].status.busy = 0.37;
  const std::vector<place::Held> foreign{{.device = "GPU-1", .holder = "bob (process 7)"}};
  EXPECT_EQ(leases_text(state("one"), foreign, machine, kNow_s, Table::kAnyWidth),
            "DEVICE  USER             JOB       FOR  LEFT   SHARE               BUSY  MEMORY        WHAT\n"
            "gpu:0   alice            1         5 s  1 min  50 % (time slices)  37 %  12 of 48 GiB  one: sleep 100\n"
            "gpu:1   bob (process 7)  no lease  -    -      100 %               -     -\n");
  EXPECT_EQ(leases_text({}, {}, machine, kNow_s, 80), "Nobody holds a device\n");
}

TEST(LeasesText, SaysNothingOfPartsAndLimitsWhereThereAreNone) {
  pool::PoolState whole = state();
  whole.leases = {{.job = 1, .device = "GPU-0", .since_s = kNow_s - 5}};
  EXPECT_EQ(leases_text(whole, {}, shared_machine(), kNow_s, 80),
            "DEVICE  USER   JOB  FOR  BUSY  MEMORY  WHAT\n"
            "gpu:0   alice    1  5 s  -     -       sleep 100\n");
}

TEST(LeasesText, KeepsToTheTerminalWhateverJobsAreCalled) {
  std::string hostile = "\x1b[2J\t";
  for (int i = 0; i < 60; ++i) hostile += "ö";
  for (const size_t width : {80, 100}) {
    const std::string text = leases_text(state(hostile), kForeign, shared_machine(), kNow_s, width);
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, HasSubstr("?[2J ö"));
    EXPECT_THAT(text, HasSubstr("ö...\n"));
    EXPECT_THAT(text, StartsWith("DEVICE  USER"));
  }
}

TEST(QueueText, HasALineForEachJobAndCutsWhatItRunsWhereThereIsNoRoom) {
  const Inventory machine = shared_machine();
  pool::PoolState pool = state();
  EXPECT_EQ(queue_text({{}, machine, {}, {}}, kNow_s, 80), "Nobody waits\n");
  EXPECT_EQ(queue_text({pool, machine, kForeign, {}}, kNow_s, Table::kAnyWidth),
            "JOB  USER   FOR    WHAT       WHY\n"
            "  2  alice  1 min  sleep 100  1 wanted, 0 free\n");
  pool.jobs.back().priority = 3;
  pool.jobs.back().command = {"python", "train.py", "--a-flag", "that", "is", "long", "and", "another", "one"};
  EXPECT_EQ(queue_text({pool, machine, kForeign, {}}, kNow_s, 70),
            "JOB  USER   PRIORITY  FOR    WHAT                     WHY\n"
            "  2  alice         3  1 min  python train.py --a-...  1 wanted, 0 free\n");
}

TEST(QueueText, HasOneLineForAnArray) {
  const Inventory machine = shared_machine();
  pool::PoolState pool = state();
  pool.jobs.back().array = 2;
  pool.jobs.push_back(job(3, pool::JobState::waiting));
  pool.jobs.back().array = 2;
  pool.jobs.push_back(job(4, pool::JobState::waiting));
  EXPECT_EQ(queue_text({pool, machine, kForeign, {{2, "8 done, 1 waiting"}}}, kNow_s, 80),
            "JOB  USER   FOR    WHAT       WHY\n"
            "  2  alice  1 min  sleep 100  8 done, 1 waiting\n"
            "  4  alice  1 min  sleep 100  1 wanted, 0 free; behind job 2.0\n");
}

TEST(QueueText, NamesOnlyThoseBeforeWhichCouldTakeTheDevices) {
  const Inventory machine = shared_machine();
  pool::PoolState pool = state();
  pool.jobs.back().after = {1};
  pool.jobs.push_back(job(3, pool::JobState::waiting));
  EXPECT_EQ(queue_text({pool, machine, kForeign, {}}, kNow_s, 80),
            "JOB  USER   FOR    WHAT       WHY\n"
            "  2  alice  1 min  sleep 100  after job 1\n"
            "  3  alice  1 min  sleep 100  1 wanted, 0 free\n");
}

TEST(PoolJson, SaysWhoseWhatIsHeldWithoutALease) {
  const Json json = pool_json(state(), kForeign, shared_machine(), kNow_s);
  ASSERT_EQ(json["leases"].size(), 2);
  EXPECT_EQ(json["leases"][0]["user"], "alice");
  EXPECT_EQ(json["leases"][0]["label"], "gpu:0");
  EXPECT_EQ(json["leases"][1]["device"], "GPU-1");
  EXPECT_FALSE(json["leases"][1].contains("job"));
  EXPECT_EQ(json["waiting"][0]["id"], 2);
}

TEST(PoolJson, NamesTheArrayOfAJob) {
  pool::PoolState pool = state();
  EXPECT_FALSE(pool_json(pool, {}, shared_machine(), kNow_s)["leases"][0].contains("array"));
  pool.jobs.front().array = 5;
  pool.jobs.front().array_index = 7;
  const Json lease = pool_json(pool, {}, shared_machine(), kNow_s)["leases"][0];
  EXPECT_EQ(lease["array"], 5);
  EXPECT_EQ(lease["array_index"], 7);
}

}  // namespace
}  // namespace remuda::cli
