#include "confine/maker.h"

#include <gtest/gtest.h>

namespace remuda::confine {
namespace {

TEST(Maker, IsKnownByItsNames) {
  const auto maker = [](const char* vendor) { return maker_of({.vendor = vendor}); };
  EXPECT_EQ(maker("NVIDIA"), Maker::nvidia);
  EXPECT_EQ(maker("nvidia corporation"), Maker::nvidia);
  EXPECT_EQ(maker("AMD"), Maker::amd);
  EXPECT_EQ(maker("Advanced Micro Devices, Inc. [AMD/ATI]"), Maker::amd);
  EXPECT_EQ(maker("Advanced Micro Devices"), Maker::amd);
  EXPECT_EQ(maker("Intel"), Maker::other);
  EXPECT_EQ(maker(""), Maker::other);
}

}  // namespace
}  // namespace remuda::confine
