#include "base/number.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

namespace remuda {
namespace {

TEST(ParseNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(parse_number<int>("42"), 42);
  EXPECT_EQ(parse_number<int>("-42"), -42);
  EXPECT_EQ(parse_number<int64_t>("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_number<uint32_t>("fFff", 16), 0xffff);
  for (const char* wrong : {"", " 1", "1 ", "+1", "1.5", "0x1", "one", "2147483648"})
    EXPECT_EQ(parse_number<int>(wrong), std::nullopt) << wrong;
  EXPECT_EQ(parse_number<unsigned>("-1"), std::nullopt);
}

}  // namespace
}  // namespace remuda
