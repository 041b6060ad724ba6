#include "place/glob.h"

#include <gtest/gtest.h>
#include <string>

namespace remuda::place {
namespace {

TEST(Glob, KnowsStarsAndQuestionMarks) {
  EXPECT_TRUE(glob_matches("*A100*", "NVIDIA A100-SXM4-80GB"));
  EXPECT_TRUE(glob_matches("rtx ????", "RTX 4090"));
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("a*b*c", "aXbXbXc"));
  EXPECT_FALSE(glob_matches("a*b*c", "aXbX"));
  EXPECT_FALSE(glob_matches("A100", "A100-SXM4"));
  EXPECT_FALSE(glob_matches("", "a"));
}

TEST(Glob, ManyStarsCostNoMoreThanTheirProduct) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(glob_matches(pattern + "b", std::string(4000, 'a')));
}

TEST(Model, MatchesWithAndWithoutTheMaker) {
  EXPECT_TRUE(model_matches("A100*", "NVIDIA", "NVIDIA A100-SXM4-80GB"));
  EXPECT_TRUE(model_matches("nvidia a100*", "NVIDIA", "NVIDIA A100-SXM4-80GB"));
  EXPECT_TRUE(model_matches("Instinct*", "AMD", "AMD Instinct MI300X"));
  EXPECT_FALSE(model_matches("4090", "NVIDIA", "NVIDIA GeForce RTX 4090"));
  EXPECT_FALSE(model_matches("100", "A", "A100"));
  EXPECT_FALSE(model_matches("A100*", "NVIDIA", ""));
}

}  // namespace
}  // namespace remuda::place
