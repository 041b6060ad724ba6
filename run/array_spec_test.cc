#include "run/array_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<int> indices(const std::string& text) {
  const auto spec = parse_array(text);
  EXPECT_TRUE(spec) << text;
  return spec ? spec->indices : std::vector<int>();
}

std::string refusal(const std::string& text) {
  const auto spec = parse_array(text);
  EXPECT_FALSE(spec) << text;
  return spec ? "" : spec.error().message;
}

TEST(ArraySpec, ReadsWhatSlurmReads) {
  EXPECT_THAT(indices("7"), ElementsAre(7));
  EXPECT_THAT(indices("0-3"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(indices("1,3,5"), ElementsAre(1, 3, 5));
  EXPECT_THAT(indices("0-9:4"), ElementsAre(0, 4, 8));
  EXPECT_THAT(indices("8,0-2,1"), ElementsAre(0, 1, 2, 8)) << "ascending, each once";
  EXPECT_THAT(indices("999999999"), ElementsAre(999'999'999));
}

TEST(ArraySpec, ReadsHowManyMayRunAtOnce) {
  EXPECT_EQ(parse_array("0-9")->at_once, 0);
  EXPECT_EQ(parse_array("0-9%2")->at_once, 2);
  EXPECT_EQ(parse_array("1,2%1")->at_once, 1);
}

TEST(ArraySpec, RefusesAnythingElse) {
  for (const char* text :
       {"",        ",",   "1,",   "-1",    "3-1", "a",  "1-",     "-",          "1-2-3",
        "0-9:0",   "5:2", "0-9%", "0-9%0", "%2",  "1 ", "0-9%-1", "1000000000", "99999999999999999999",
        "0-9%2%3", "0x1", "+1"})
    EXPECT_THAT(refusal(text), HasSubstr("--array: '")) << text;
}

TEST(ArraySpec, IsBounded) {
  EXPECT_THAT(indices("0-9999"), SizeIs(10'000));
  EXPECT_THAT(refusal("0-10000"), HasSubstr("more than 10000 indices"));
  EXPECT_THAT(refusal("0-999999999"), HasSubstr("more than 10000 indices"));
  EXPECT_THAT(indices("0-999999999:100000"), SizeIs(10'000));
}

}  // namespace
}  // namespace remuda::run
