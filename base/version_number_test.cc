#include "base/version_number.h"

#include <gmock/gmock.h>

namespace remuda {
namespace {

VersionNumber version(const char* text) { return VersionNumber::parse(text).value(); }

TEST(VersionNumber, ComparesNumberByNumber) {
  EXPECT_LT(version("8.9"), version("8.10"));
  EXPECT_LT(version("570.148"), version("580.65.06"));
  EXPECT_EQ(version("8"), version("8.0"));
  EXPECT_GT(version("8.0.1"), version("8"));
}

TEST(LeadingNumbers, EndAtTheFirstThingThatIsNone) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  EXPECT_THAT(leading_numbers("535.161.08"), ElementsAre(535, 161, 8));
  EXPECT_THAT(leading_numbers("2.5.1+cu124"), ElementsAre(2, 5, 1));
  EXPECT_THAT(leading_numbers("90a"), ElementsAre(90));
  EXPECT_THAT(leading_numbers("12."), ElementsAre(12));
  EXPECT_THAT(leading_numbers("-3"), IsEmpty());
  EXPECT_THAT(leading_numbers("99999999999999999999"), IsEmpty());
  EXPECT_THAT(leading_numbers(""), IsEmpty());
  EXPECT_LT(leading_numbers("525.60.12"), leading_numbers("525.60.13"));
  EXPECT_LT(leading_numbers("12"), leading_numbers("12.2"));
  EXPECT_LT(leading_numbers("9.10"), leading_numbers("10.2"));
}

TEST(VersionNumber, IsNothingElse) {
  for (const char* text : {"", ".", "8.", ".8", "8..0", "a", "8a", "-1", "1.-1", "1.2.3.4.5.6.7", "9999999999", " 8"})
    EXPECT_FALSE(VersionNumber::parse(text)) << text;
}

}  // namespace
}  // namespace remuda
