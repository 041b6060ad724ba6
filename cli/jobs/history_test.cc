#include "cli/jobs/history.h"

#include <gmock/gmock.h>

#include "base/local_time.h"
#include "base/table.h"

namespace remuda::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kEnd_s = 1'000'000;

pool::Job ended_job(int64_t id, const std::string& user, double ended_s, int status = 0) {
  pool::Job job;
  job.id = id;
  job.user = user;
  job.state = pool::JobState::ended;
  job.started_s = ended_s - 90;
  job.ended_s = ended_s;
  job.exit_status = status;
  job.devices = {"GPU-0"};
  job.command = {"sleep", "100"};
  return job;
}

std::vector<pool::Job> four_jobs() {
  pool::Job cancelled = ended_job(4, "ada", kEnd_s + 20);
  cancelled.cancelled = true;
  cancelled.started_s = 0;
  cancelled.devices.clear();
  return {cancelled, ended_job(3, "bob", kEnd_s), ended_job(2, "ada", kEnd_s + 10, 3),
          ended_job(1, "ada", kEnd_s - 10)};
}

std::vector<int64_t> ids(const HistoryFilter& filter) {
  std::vector<int64_t> ids;
  for (const pool::Job& job : filtered(four_jobs(), filter)) ids.push_back(job.id);
  return ids;
}

TEST(History, ListsTheLastToEndFirst) {
  EXPECT_THAT(ids({.at_most = 10}), ElementsAre(4, 2, 3, 1));
  EXPECT_THAT(ids({.at_most = 2}), ElementsAre(4, 2));
}

TEST(History, IsFilteredByUserTimeAndState) {
  EXPECT_THAT(ids({.user = "ada", .at_most = 2}), ElementsAre(4, 2));
  EXPECT_THAT(ids({.since_s = kEnd_s, .at_most = 10}), ElementsAre(4, 2, 3));
  EXPECT_THAT(ids({.stage = pool::Stage::failed, .at_most = 10}), ElementsAre(2));
  EXPECT_THAT(ids({.stage = pool::Stage::cancelled, .at_most = 10}), ElementsAre(4));
  EXPECT_THAT(ids({.stage = pool::Stage::done, .at_most = 10}), ElementsAre(3, 1));
}

TEST(History, HasALineForEachJob) {
  Inventory machine;
  machine.devices.push_back({.id = "GPU-0", .kind = DeviceKind::gpu, .index = 0});
  const std::string text =
      history_text(filtered(four_jobs(), {.user = "ada", .at_most = 2}), machine, Table::kAnyWidth);
  EXPECT_THAT(text, HasSubstr("cancelled   125  -      -        sleep 100\n"));
  EXPECT_THAT(text, HasSubstr(local_time_text(kEnd_s + 10) + "  failed        3  1 min  gpu:0    sleep 100\n"));
  pool::Job limited = ended_job(5, "ada", kEnd_s, 143);
  limited.why = "reached its time limit of 60 s";
  EXPECT_THAT(history_text({limited}, machine, Table::kAnyWidth), HasSubstr("failed  143 (time limit)  1 min  gpu:0 "));
  EXPECT_EQ(history_text({}, machine, 80), "No such job has ended, as far as the pool remembers\n");
}

}  // namespace
}  // namespace remuda::cli
