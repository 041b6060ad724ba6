#include "train/operator_watch.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace remuda::train {
namespace {

int64_t calls_of(profile::Recorder& recorder, const std::string& name) {
  const auto totals = recorder.totals();
  const auto found = std::ranges::find(totals, name, &profile::OperationTotal::name);
  return found == totals.end() ? 0 : found->calls;
}

/// A forward and a backward pass; the thread has joined `recorder`.
void pass() {
  const auto weight = torch::ones({4, 4}, torch::requires_grad());
  torch::relu(torch::mm(weight, weight)).sum().backward();
}

TEST(OperatorWatch, RecordsOperatorsForwardAndBackward) {
  profile::Recorder recorder;
  const profile::Join join(&recorder, "steps");
  recorder.set_recording(true);
  {
    const OperatorWatch watch(recorder);
    const profile::Span span("step");
    pass();
  }
  EXPECT_EQ(calls_of(recorder, "aten::relu"), 1);
  EXPECT_EQ(calls_of(recorder, "aten::mm"), 3) << "one forward, two backward";
  const auto tracks = recorder.tracks();
  ASSERT_EQ(tracks.size(), 1u) << "the backward pass of a CPU is on the thread that calls it";
  const auto& step = tracks[0].spans.back();
  EXPECT_EQ(step.name, "step");
  double within_s = 0;
  for (const auto& total : recorder.totals()) within_s += total.self_s;
  EXPECT_GT(within_s, 0);
  EXPECT_LE(within_s, step.end_s - step.start_s) << "self times of one thread do not overlap";
}

TEST(OperatorWatch, IsSilentOutsideOfItsLifeAndOfRecording) {
  profile::Recorder recorder;
  const profile::Join join(&recorder, "steps");
  {
    const OperatorWatch watch(recorder);
    pass();
  }
  recorder.set_recording(true);
  pass();
  EXPECT_TRUE(recorder.totals().empty());
}

TEST(OperatorWatch, EndsOperatorsThatThrow) {
  profile::Recorder recorder;
  const profile::Join join(&recorder, "steps");
  recorder.set_recording(true);
  const OperatorWatch watch(recorder);
  EXPECT_ANY_THROW(torch::mm(torch::ones({2, 3}), torch::ones({2, 3})));
  torch::ones({1});
  EXPECT_EQ(calls_of(recorder, "aten::mm"), 1);
  const auto totals = recorder.totals();
  const auto ones = std::ranges::find(totals, "aten::ones", &profile::OperationTotal::name);
  ASSERT_NE(ones, totals.end());
  EXPECT_EQ(ones->calls, 3);
}

}  // namespace
}  // namespace remuda::train
