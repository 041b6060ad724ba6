#include "base/characters.h"

#include <gtest/gtest.h>

namespace remuda {
namespace {

TEST(Characters, AreNotBytes) {
  EXPECT_EQ(characters(""), 0);
  EXPECT_EQ(characters("abc"), 3);
  EXPECT_EQ(characters("größe"), 5);
  EXPECT_EQ(first_characters("größe", 3), "grö");
  EXPECT_EQ(first_characters("größe", 9), "größe");
}

TEST(Characters, AShortenedTextSaysThatItIs) {
  EXPECT_EQ(shortened("größe", 5), "größe");
  EXPECT_EQ(shortened("größer", 5), "gr...");
  EXPECT_EQ(shortened("größer", 3), "...");
  EXPECT_EQ(shortened("größer", 2), "..");
  EXPECT_EQ(shortened("größer", 0), "");
}

}  // namespace
}  // namespace remuda
