#include "recorded/text.h"

#include <gmock/gmock.h>

namespace remuda::recorded {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Text lines_of(std::string_view raw) { return read_lines(raw, "here").value(); }

TEST(Lines, EndInAnyWayAndBlankOnesAreNone) {
  EXPECT_THAT(lines_of("a\nb\r\nc\rd\n\n \t \ne").lines, ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(lines_of("").lines, SizeIs(0));
}

TEST(Lines, TheFirstCommentIsTheSource) {
  const Text text = lines_of("# source: a/b#12 (verbatim)\n# other\nrow\n");
  EXPECT_EQ(text.comment, "a/b#12 (verbatim)");
  EXPECT_THAT(text.lines, ElementsAre("row"));
  EXPECT_EQ(lines_of("# found on a page").comment, "found on a page");
}

TEST(Lines, ACommandOfRootIsNoComment) {
  const Text text = lines_of("# about topo -p2p\n# nvidia-smi topo -p2p r\n");
  EXPECT_THAT(text.lines, ElementsAre("# nvidia-smi topo -p2p r"));
}

TEST(Lines, HoldNeitherEscapesNorControlCharacters) {
  EXPECT_THAT(lines_of("\x1b[4mGPU0\x1b[0m\t\x1b]0;title\aX\x1bM!\x01\x7f.\n").lines, ElementsAre("GPU0\tX!  ."));
  EXPECT_THAT(lines_of("a\x1b[31\nb\x1b]x\nc\x1b\nd\x1b").lines, ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(lines_of("\xef\xbb\xbf"
                       "a\xc2\xa0z")
                  .lines,
              ElementsAre("a z"));
}

TEST(Lines, ALastLineThatNothingEndsMayBeCut) {
  EXPECT_TRUE(lines_of("a\nb").cut);
  EXPECT_FALSE(lines_of("a\nb\n").cut);
  EXPECT_FALSE(lines_of("a\n# comment").cut);
}

TEST(Lines, OfHugeTextAreRefused) {
  const auto text = read_lines(std::string((4 << 20) + 1, 'x'), "here");
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("here is text of 4.0 MiB"));
}

TEST(Words, KnowWhereTheyStand) {
  const auto found = words(" a\t\tbc ");
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[1].text, "bc");
  EXPECT_EQ(found[1].at, 4U);
}

TEST(WholeNumber, IsDigitsOnly) {
  EXPECT_EQ(whole_number("042"), 42);
  for (const char* wrong : {"", "-1", "-0", "+1", " 1", "1 ", "1x", "99999999999"})
    EXPECT_FALSE(whole_number(wrong)) << wrong;
}

TEST(SomeOf, NamesAFewAndCountsTheRest) {
  EXPECT_EQ(some_of({"a"}), "a");
  EXPECT_EQ(some_of({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(some_of({"a", "b", "c", "d", "e"}), "a, b, c, d and e");
  EXPECT_EQ(some_of({"a", "b", "c", "d", "e", "f"}), "a, b, c, d and 2 more");
}

TEST(Brief, IsPrintableAndBounded) {
  EXPECT_EQ(brief("a\x1b[2Jb", 20), "a?[2Jb");
  EXPECT_LE(brief(std::string(10, '\xff'), 5).size(), 5U);
}

}  // namespace
}  // namespace remuda::recorded
