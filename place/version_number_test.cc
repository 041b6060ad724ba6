#include "place/version_number.h"

#include <gtest/gtest.h>

namespace remuda::place {
namespace {

VersionNumber version(const char* text) { return VersionNumber::parse(text).value(); }

TEST(VersionNumber, ComparesNumberByNumber) {
  EXPECT_LT(version("8.9"), version("8.10"));
  EXPECT_LT(version("570.148"), version("580.65.06"));
  EXPECT_EQ(version("8"), version("8.0"));
  EXPECT_GT(version("8.0.1"), version("8"));
}

TEST(VersionNumber, IsNothingElse) {
  for (const char* text : {"", ".", "8.", ".8", "8..0", "a", "8a", "-1", "1.-1", "1.2.3.4.5.6.7", "9999999999", " 8"})
    EXPECT_FALSE(VersionNumber::parse(text)) << text;
}

}  // namespace
}  // namespace remuda::place
