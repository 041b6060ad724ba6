// On the stand-in accelerator, whose run-time library this program plays.
#include "train/device/pinned_memory.h"

#include <algorithm>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using testing::standin_pinned;

DeviceOps ops_of(torch::Device device) { return DeviceOps::open(device).value(); }
const torch::Device kPinnedFor(torch::kXPU, 0);

TEST(PinnedMemory, IsPlainMemoryForACpu) {
  const auto memory = pinned_memory(ops_of(torch::kCPU))(100);
  EXPECT_FALSE(standin_pinned(memory.get(), 100));
  std::memset(memory.get(), 1, 100);
}

TEST(PinnedMemory, IsRegisteredWithTheDriverAsLongAsItIsThere) {
  std::shared_ptr<std::byte[]> held;
  {
    const auto take = pinned_memory(ops_of(kPinnedFor));
    held = take(100'000);
    EXPECT_TRUE(standin_pinned(held.get(), 100'000));
    std::memset(held.get(), 1, 100'000);
  }
  std::byte* const start = held.get();
  EXPECT_TRUE(standin_pinned(start, 100'000)) << "it outlives what it came from";
  held.reset();
  EXPECT_FALSE(standin_pinned(start, 1));
}

TEST(PinnedMemory, IsUsedAgainForWhatIsAboutAsLong) {
  const auto take = pinned_memory(ops_of(kPinnedFor));
  std::byte* const first = take(100'000).get();
  EXPECT_EQ(take(90'000).get(), first);
  const auto longer = take(130'000), much_shorter = take(1000), same = take(100'000);
  EXPECT_NE(longer.get(), first) << "too short";
  EXPECT_NE(much_shorter.get(), first) << "a waste";
  EXPECT_EQ(same.get(), first);
  EXPECT_NE(take(100'000).get(), first) << "somebody holds it";
}

TEST(PinnedMemory, IsNotKeptForEver) {
  const auto take = pinned_memory(ops_of(kPinnedFor));
  std::vector<std::byte*> all;
  {
    std::vector<std::shared_ptr<std::byte[]>> held;
    for (size_t i = 0; i < 12; ++i) {
      held.push_back(take(10'000));
      all.push_back(held.back().get());
    }
  }
  EXPECT_EQ(std::ranges::count_if(all, [](std::byte* start) { return standin_pinned(start, 10'000); }), 8);
}

TEST(PinnedMemory, IsWhereABatchGoesToTheDeviceFrom) {
  const auto memory = pinned_memory(ops_of(kPinnedFor))(4 * sizeof(float));
  auto host = torch::from_blob(memory.get(), {4}, torch::kFloat);
  host.copy_(torch::arange(4, torch::kFloat));
  EXPECT_TRUE(host.to(kPinnedFor, true).to(torch::kCPU).equal(host));
}

}  // namespace
}  // namespace remuda::train
