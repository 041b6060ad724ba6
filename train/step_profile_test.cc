#include "train/step_profile.h"

#include <algorithm>
#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"
#include "comm/testing/run_ranks.h"
#include "train/device/memory_watch.h"
#include "train/testing/capped_memory.h"

namespace remuda::train {
namespace {

using Transport = comm::ConnectOptions::Transport;

constexpr int kSkipped = 3;

job::TrainJob profiled(int steps, const std::string& trace) {
  job::TrainJob job;
  job.devices = {{.use = "cpu:0"}, {.use = "cpu:1"}};
  job.output.profile = steps;
  job.output.trace = trace;
  return job;
}

/// So many steps of two ranks, after those `before`, each a sum of tensors and a span; rank 0's report.
Json report_after(const job::TrainJob& job, int steps, int before = 0) {
  Json report;
  const testing::CappedMemory counted;
  comm::run_ranks(2, Transport::shared_memory, [&](comm::Communicator& communicator) {
    const Events events(-1);
    testing::Budget budget;
    const testing::OnDevice device(budget);
    StepProfile profile(job, communicator, events, kSkipped);
    ASSERT_TRUE(profile.open());
    profile.begin_after(before);
    for (int step = before; step < before + steps; ++step) {
      ASSERT_TRUE(profile.begin_step(step, {.compute_s = double(step)}));
      {
        const profile::Span span("work");
        const MemoryWatch watch(torch::kCPU);
        torch::relu(torch::ones({4}));
      }
      ASSERT_TRUE(profile.end_step({.compute_s = step + 0.25, .wait_s = 0.5 * step}));
    }
    ASSERT_TRUE(profile.finish());
    if (communicator.rank() == 0) report = profile.report();
  });
  return report;
}

Json trace_in(const ScratchFolder& folder) {
  auto trace = parse_json(folder.read("trace.json"), "trace.json");
  EXPECT_TRUE(trace) << trace.error().message;
  return trace ? (*trace)["traceEvents"] : Json::array();
}

int count(const Json& events, const std::string& name) {
  return int(std::ranges::count_if(events, [&](const Json& event) { return event["name"] == name; }));
}

/// By the counter of a rank; -1 where it has none.
double most_in_use(const Json& events, int rank) {
  double most = -1;
  for (const Json& event : events)
    if (event["ph"] == "C" && event["name"] == kMemoryCounter && event["pid"] == rank + 1)
      most = std::max(most, double(event["args"]["value"]));
  return most;
}

TEST(StepProfile, RecordsTheStepsAfterTheFirstOfEveryRank) {
  const ScratchFolder folder;
  const Json report = report_after(profiled(2, folder.path("trace.json")), 9);
  EXPECT_EQ(report["first_step"], kSkipped + 1);
  EXPECT_EQ(report["steps"], 2);
  EXPECT_EQ(report["trace"], folder.path("trace.json"));
  ASSERT_EQ(report["devices"].size(), 2u);
  for (const Json& rank : report["devices"]) {
    EXPECT_EQ(rank["compute_s"], 0.5) << "of the two steps, by what it was told";
    EXPECT_EQ(rank["wait_s"], 1.5 + 2.0);
    EXPECT_EQ(rank["clock_error_s"], 0);
    const auto is_relu = [](const Json& one) { return one["name"] == "aten::relu"; };
    const auto relu = std::ranges::find_if(rank["operators"], is_relu);
    ASSERT_NE(relu, rank["operators"].end());
    EXPECT_EQ((*relu)["calls"], 2);
  }
  const Json events = trace_in(folder);
  EXPECT_EQ(count(events, "step"), 4);
  EXPECT_EQ(count(events, "work"), 4);
  EXPECT_EQ(count(events, "aten::relu"), 4);
  EXPECT_EQ(most_in_use(events, 0), 32) << "two tensors of four numbers";
  EXPECT_EQ(most_in_use(events, 1), 32);
}

TEST(StepProfile, OfARunThatGoesOnLeavesOutItsOwnFirstSteps) {
  const Json report = report_after(profiled(2, ""), 9, 100);
  EXPECT_EQ(report["first_step"], 100 + kSkipped + 1);
  EXPECT_EQ(report["steps"], 2);
}

TEST(StepProfile, OfARunThatHasItRecordsNoMore) {
  const ScratchFolder folder;
  comm::run_ranks(1, Transport::shared_memory, [&](comm::Communicator& communicator) {
    const Events events(-1);
    const job::TrainJob job = profiled(1, folder.path("trace.json"));
    StepProfile profile(job, communicator, events, 0);
    ASSERT_TRUE(profile.open());
    profile.take({{"steps", 7}});
    ASSERT_TRUE(profile.begin_step(0, {}));
    ASSERT_TRUE(profile.end_step({}));
    ASSERT_TRUE(profile.finish());
    EXPECT_EQ(profile.report(), Json({{"steps", 7}}));
  });
  EXPECT_FALSE(folder.has("trace.json"));
}

TEST(StepProfile, OfARunThatEndsEarlyHasTheStepsThatWere) {
  const ScratchFolder folder;
  EXPECT_EQ(report_after(profiled(100, folder.path("trace.json")), kSkipped + 1)["steps"], 1);
  EXPECT_EQ(count(trace_in(folder), "step"), 2);
  EXPECT_EQ(report_after(profiled(100, ""), kSkipped)["steps"], 0);
}

TEST(StepProfile, WithoutAFileHasTheTotalsOnly) {
  const Json report = report_after(profiled(1, ""), kSkipped + 1);
  EXPECT_EQ(report["steps"], 1);
  EXPECT_FALSE(report.contains("trace"));
}

TEST(StepProfile, IsNothingWhereNoneIsAskedFor) { EXPECT_TRUE(report_after(profiled(0, ""), kSkipped + 1).is_null()); }

TEST(StepProfile, RefusesAFileThatCannotBeWritten) {
  comm::run_ranks(1, Transport::shared_memory, [](comm::Communicator& communicator) {
    const Events events(-1);
    const job::TrainJob job = profiled(1, "/no/such/folder/trace.json");
    EXPECT_THAT(StepProfile(job, communicator, events, 0).open().error().message,
                ::testing::HasSubstr("/no/such/folder/trace.json"));
  });
}

}  // namespace
}  // namespace remuda::train
