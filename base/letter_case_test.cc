#include "base/letter_case.h"

#include <gtest/gtest.h>

namespace remuda {
namespace {

TEST(LetterCase, IsOfTheLettersOfAsciiAlone) {
  EXPECT_EQ(lower("GeForce RTX-4090 \xc3\x84@[`{Z"), "geforce rtx-4090 \xc3\x84@[`{z");
  EXPECT_EQ(lower(""), "");
}

TEST(LetterCase, TextsAreOneWhateverTheirCase) {
  EXPECT_TRUE(equals_without_case("NVIDIA", "nvidia"));
  EXPECT_FALSE(equals_without_case("NVIDIA", "nvidi"));
  EXPECT_FALSE(equals_without_case("[", "{"));  // 32 apart, as A and a
}

}  // namespace
}  // namespace remuda
