// Each wait between the streams of a device, and of the host for it, is needed: what is left out gives wrong numbers.
#include <gtest/gtest.h>

#include "train/testing/divided.h"
#include "train/testing/standin/library.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using testing::configure_standin;
using testing::Division;
using testing::model_cases;
using testing::Setting;
using testing::train_divided;
using testing::WaitKind;

/// Runs three steps of two ranks, CPU and stand-in, with one of the waits of this kind ignored. The stream that is
/// waited for does nothing that nobody waits for, so that no work is done in time by chance.
class Waits {
 public:
  Waits(WaitKind kind, torch::ScalarType sent_as, UpdatesOn updates_on, Streams streams, bool by_devices = false)
      : kind_(kind), sent_as_(sent_as), updates_on_(updates_on), streams_(streams), by_devices_(by_devices) {
    if (by_devices) testing::use_standin_library();
    const bool for_compute = kind == WaitKind::copies_for_compute;
    configure_standin(0, {.lazy_compute = for_compute, .lazy_copies = !for_compute, .pool = 3});
  }
  ~Waits() { configure_standin(0, {}); }

  /// The parameters; empty where the ranks ended with different ones, or failed.
  std::vector<torch::Tensor> train(int ignored) {
    const Setting setting{{.momentum = 0.9}, false, of_one ? 0.01 : 0, sent_as_};
    Division division{{{10, 14}, {12, 12}, {14, 10}}, {1, 1}};
    if (of_one) division.splits = {{0, 24}, {0, 24}, {0, 24}}, division.state_shares = {0, 1}, division.lags = true;
    division.updates_on = {updates_on_, updates_on_};
    division.streams = streams_;
    division.by_devices = by_devices_;
    division.waits_for_updates = for_updates;
    division.begins = [this, ignored] { testing::watch_waits(0, kind_, ignored); };
    auto parameters = train_divided(model_cases()[0], setting, division).parameters;
    count = testing::watch_waits(0, kind_, -1);
    return parameters;
  }

  int count = 0;
  bool for_updates = true;
  bool of_one = false;  ///< the stand-in computes and owns everything, and its norm is limited

 private:
  WaitKind kind_;
  torch::ScalarType sent_as_;
  UpdatesOn updates_on_;
  Streams streams_;
  bool by_devices_;
};

bool same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!a[i].equal(b[i])) return false;
  return true;
}

class EveryWait : public ::testing::TestWithParam<std::tuple<WaitKind, torch::ScalarType, UpdatesOn, Streams>> {};

INSTANTIATE_TEST_SUITE_P(Kinds, EveryWait,
                         ::testing::Combine(::testing::Values(WaitKind::copies_for_compute,
                                                              WaitKind::compute_for_copies, WaitKind::host_for_copies),
                                            ::testing::Values(torch::kFloat, torch::kBFloat16),
                                            ::testing::Values(UpdatesOn::device, UpdatesOn::host),
                                            ::testing::Values(Streams::shared, Streams::separate)));

TEST_P(EveryWait, IsNeeded) {
  const auto [kind, sent_as, updates_on, streams] = GetParam();
  Waits waits(kind, sent_as, updates_on, streams);
  const auto expected = waits.train(-1);
  ASSERT_FALSE(expected.empty());
  EXPECT_TRUE(same(waits.train(-1), expected)) << "repeatable";
  const int count = waits.count;
  ASSERT_GE(count, 3) << "one in each step at least";
  for (int ignored = 0; ignored < count; ++ignored)
    EXPECT_FALSE(same(waits.train(ignored), expected)) << "wait " << ignored << " of " << count;
}

/// Of each step that of the last bucket, behind which the host gives the device nothing more to do: whether one before
/// it matters is a race.
TEST(EveryWaitByDevices, ForTheLastGradientsIsNeeded) {
  constexpr int kBuckets = 2;
  for (const Streams streams : {Streams::shared, Streams::separate}) {
    Waits waits(WaitKind::copies_for_compute, torch::kFloat, UpdatesOn::device, streams, true);
    const auto expected = waits.train(-1);
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(waits.count, 3 * (kBuckets + 1)) << "for each bucket of a step, and once for what is gathered";
    for (int ignored = kBuckets - 1; ignored < 3 * (kBuckets + 1); ignored += kBuckets + 1)
      EXPECT_FALSE(same(waits.train(ignored), expected)) << "wait " << ignored;
  }
}

/// Where nobody waits for updates, each wait that is left is needed, too.
TEST(EveryWaitWithoutUpdates, IsNeeded) {
  for (const WaitKind kind : {WaitKind::copies_for_compute, WaitKind::compute_for_copies, WaitKind::host_for_copies})
    for (const Streams streams : {Streams::shared, Streams::separate}) {
      Waits waits(kind, torch::kFloat, UpdatesOn::device, streams);
      waits.for_updates = false;
      const auto expected = waits.train(-1);
      ASSERT_FALSE(expected.empty());
      const int count = waits.count;
      ASSERT_GE(count, 3) << "one in each step at least";
      for (int ignored = 0; ignored < count; ++ignored)
        EXPECT_FALSE(same(waits.train(ignored), expected)) << "wait " << ignored << " of " << count;
    }
}

/// Where one rank has everything: of each step, for the gradients before their norm, for the norm before the host reads
/// it, and for values of the host before the device computes. What else waits are the copies that this test makes, and
/// the last one to all ranks.
TEST(EveryWaitOfOne, ThatAStepMakesIsNeeded) {
  const auto needed = [](WaitKind kind, UpdatesOn updates_on) {
    Waits waits(kind, torch::kFloat, updates_on, Streams::separate);
    waits.of_one = true;
    waits.for_updates = false;
    const auto expected = waits.train(-1);
    EXPECT_FALSE(expected.empty());
    EXPECT_TRUE(same(waits.train(-1), expected)) << "repeatable";
    int found = 0;
    for (int ignored = 0, count = waits.count; ignored < count; ++ignored)
      found += same(waits.train(ignored), expected) ? 0 : 1;
    return found;
  };
  constexpr int kSteps = 3, kBuckets = 2;
  for (const UpdatesOn updates_on : {UpdatesOn::device, UpdatesOn::host}) {
    EXPECT_GE(needed(WaitKind::copies_for_compute, updates_on), kSteps * kBuckets);
    EXPECT_GE(needed(WaitKind::host_for_copies, updates_on), kSteps);
  }
  EXPECT_GE(needed(WaitKind::compute_for_copies, UpdatesOn::host), kSteps);
}

/// What a CPU has updated is on the device before its maker's library sends it, also where each has a stream of its
/// own.
TEST(EveryWaitByDevices, ForValuesOfTheHostIsNeeded) {
  Waits waits(WaitKind::copies_for_copies, torch::kFloat, UpdatesOn::host, Streams::separate, true);
  const auto expected = waits.train(-1);
  ASSERT_FALSE(expected.empty());
  const int count = waits.count;
  ASSERT_EQ(count, 3 * 2) << "for each bucket of a step";
  for (int ignored = 0; ignored < count; ++ignored)
    EXPECT_FALSE(same(waits.train(ignored), expected)) << "wait " << ignored;
}

}  // namespace
}  // namespace remuda::train
