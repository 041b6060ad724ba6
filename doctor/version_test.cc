#include "doctor/version.h"

#include <gmock/gmock.h>

namespace remuda::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(VersionNumbers, StopAtWhatIsNoNumber) {
  EXPECT_THAT(version_numbers("535.161.08"), ElementsAre(535, 161, 8));
  EXPECT_THAT(version_numbers("2.5.1+cu124"), ElementsAre(2, 5, 1));
  EXPECT_THAT(version_numbers("90a"), ElementsAre(90));
  EXPECT_THAT(version_numbers("12."), ElementsAre(12));
  EXPECT_THAT(version_numbers("-3"), IsEmpty());
  EXPECT_THAT(version_numbers("99999999999999999999"), IsEmpty());
  EXPECT_THAT(version_numbers(""), IsEmpty());
}

TEST(VersionNumbers, Compare) {
  EXPECT_LT(version_numbers("525.60.12"), version_numbers("525.60.13"));
  EXPECT_LT(version_numbers("12"), version_numbers("12.2"));
  EXPECT_LT(version_numbers("9.10"), version_numbers("10.2"));
}

}  // namespace
}  // namespace remuda::doctor
