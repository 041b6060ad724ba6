#include "base/crc32c.h"

#include <gtest/gtest.h>
#include <string>

namespace remuda {
namespace {

TEST(Crc32c, HasTheValuesOfRfc3720) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  std::string ascending, descending;
  for (int byte = 0; byte < 32; ++byte) {
    ascending += static_cast<char>(byte);
    descending += static_cast<char>(31 - byte);
  }
  EXPECT_EQ(crc32c(ascending), 0x46DD794EU);
  EXPECT_EQ(crc32c(descending), 0x113FDB5CU);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(""), 0U);
}

}  // namespace
}  // namespace remuda
