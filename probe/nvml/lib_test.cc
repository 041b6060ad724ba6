#include "probe/nvml/lib.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::probe::nvml {
namespace {

using ::testing::HasSubstr;

TEST(LoadLib, SaysInOneSentenceThatThereIsNone) {
  const auto lib = load_lib("libno-such-thing.so.1");
  ASSERT_FALSE(lib);
  EXPECT_EQ(lib.error().message, "libno-such-thing.so.1 is not installed: no NVIDIA driver here");
}

TEST(LoadLib, RefusesALibraryWithoutTheCallsThatAllElseNeeds) {
  const auto lib = load_lib("libm.so.6");
  ASSERT_FALSE(lib);
  EXPECT_THAT(lib.error().message, HasSubstr("libm.so.6 lacks nvmlInit"));
}

TEST(LoadLib, TellsWhyAFileIsNoLibrary) {
  const auto lib = load_lib("/proc/self/status");
  ASSERT_FALSE(lib);
  EXPECT_THAT(lib.error().message, HasSubstr("/proc/self/status cannot be loaded: "));
}

}  // namespace
}  // namespace remuda::probe::nvml
