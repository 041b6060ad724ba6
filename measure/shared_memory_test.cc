#include "measure/shared_memory.h"

#include <gmock/gmock.h>
#include <unistd.h>

namespace remuda::measure {
namespace {

TEST(SharedMemory, IsSeenByAllWhoOpenIt) {
  const auto mine = SharedMemory::create(10'000);
  ASSERT_TRUE(mine) << mine.error().message;
  const auto other = SharedMemory::open(Fd(::dup(mine->fd())), 10'000);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->bytes()[9'999], std::byte{0});
  mine->bytes()[9'999] = std::byte{7};
  EXPECT_EQ(other->bytes()[9'999], std::byte{7});
}

TEST(SharedMemory, ThatIsTooShortIsRefused) {
  const auto mine = SharedMemory::create(4096);
  ASSERT_TRUE(mine);
  const auto other = SharedMemory::open(Fd(::dup(mine->fd())), 8192);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, ::testing::HasSubstr("holds 4096 bytes, not 8192"));
}

TEST(SharedMemory, OfNoDescriptorIsRefused) { EXPECT_FALSE(SharedMemory::open(Fd(), 4096)); }

}  // namespace
}  // namespace remuda::measure
