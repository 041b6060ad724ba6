// On the stand-in accelerator.
#include "train/device/host_copies.h"

#include <gtest/gtest.h>
#include <vector>

#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

const torch::Device kCopied(torch::kXPU, 1);

class HostCopiesTest : public ::testing::TestWithParam<bool> {
 protected:
  ~HostCopiesTest() override { testing::configure_standin(1, {}); }
};

INSTANTIATE_TEST_SUITE_P(Pinned, HostCopiesTest, ::testing::Bool());

TEST_P(HostCopiesTest, AreThereOnceTheyAreFinished) {
  for (const Streams streams : {Streams::shared, Streams::separate}) {
    const DeviceOps ops = DeviceOps::open(kCopied, streams).value();
    const HostCopies copies(ops, GetParam());
    testing::configure_standin(1, {.pool = 3, .random_delay_s = 1e-3});
    std::vector<torch::Tensor> all, kept;
    for (int i = 0; i < 8; ++i) {
      torch::Tensor values = all.emplace_back(torch::zeros({100}, torch::device(kCopied)));
      values.fill_(i);
      kept.push_back(copies.room(100, torch::kFloat));
      EXPECT_EQ(testing::standin_pinned(kept.back().data_ptr(), 400), GetParam());
      copies.copy(kept.back(), values);
    }
    ASSERT_TRUE(copies.finish("a copy"));
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(kept[size_t(i)].eq(i).all().item<bool>()) << i;
  }
}

/// Else the test above could not fail.
TEST(HostCopiesOfPinnedMemory, AreNotThereBefore) {
  const DeviceOps ops = DeviceOps::open(kCopied).value();
  const HostCopies copies(ops, true);
  torch::Tensor values = torch::ones({100}, torch::device(kCopied));
  testing::configure_standin(1, {.lazy_copies = true});
  const torch::Tensor kept = copies.room(100, torch::kFloat);
  copies.copy(kept, values);
  EXPECT_FALSE(kept.eq(1).any().item<bool>());
  ASSERT_TRUE(copies.finish("a copy"));
  EXPECT_TRUE(kept.eq(1).all().item<bool>());
  testing::configure_standin(1, {});
}

TEST_P(HostCopiesTest, MemoryOfOthersIsKnownToTheDriverWhileTheyWantThat) {
  const DeviceOps ops = DeviceOps::open(kCopied).value();
  std::vector<std::byte> memory(10'000);
  {
    const auto known = HostCopies(ops, GetParam()).known(memory);
    EXPECT_EQ(testing::standin_pinned(memory.data(), memory.size()), GetParam());
  }
  EXPECT_FALSE(testing::standin_pinned(memory.data(), 1));
}

TEST_P(HostCopiesTest, MeanNothingOnACpu) {
  const DeviceOps cpu = DeviceOps::open(torch::kCPU).value();
  const HostCopies copies(cpu, GetParam());
  const torch::Tensor kept = copies.room(3, torch::kDouble);
  copies.copy(kept, torch::full({3}, 2.0, torch::kDouble));
  ASSERT_TRUE(copies.finish("a copy"));
  EXPECT_TRUE(kept.eq(2).all().item<bool>());
  EXPECT_FALSE(testing::standin_pinned(kept.data_ptr(), 1));
}

}  // namespace
}  // namespace remuda::train
