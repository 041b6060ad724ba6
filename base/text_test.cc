#include "base/text.h"

#include <gmock/gmock.h>

namespace remuda {
namespace {

using ::testing::ElementsAre;

TEST(EditDistance, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("", "ab"), 2u);
  EXPECT_EQ(edit_distance("epoch", "epochs"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("flaw", "lawn"), edit_distance("lawn", "flaw"));
}

TEST(ToldApart, NumbersOnlyNamesThatComeAgain) {
  EXPECT_THAT(made_distinct({"a", "b", "a", "c", "a"}), ElementsAre("a #1", "b", "a #2", "c", "a #3"));
  EXPECT_THAT(made_distinct({}), ElementsAre());
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> known{"list", "train", "completion"};
  EXPECT_EQ(nearest("lst", known), "list");
  EXPECT_EQ(nearest("trian", known), "train");
  EXPECT_EQ(nearest("complete", known), "completion");
  EXPECT_EQ(nearest("train", known), "train");
}

TEST(Nearest, StaysSilentWhenNothingIsNear) {
  const std::vector<std::string> known{"list", "train"};
  EXPECT_EQ(nearest("completion", known), "");
  EXPECT_EQ(nearest("x", std::vector<std::string>{"lr"}), "");
  EXPECT_EQ(nearest("anything", {}), "");
}

TEST(Nearest, TakesTheFirstOfEquals) { EXPECT_EQ(nearest("cat", std::vector<std::string>{"bat", "hat"}), "bat"); }

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split(",", ','), ElementsAre("", ""));
  EXPECT_THAT(split("cpu:0", ','), ElementsAre("cpu:0"));
}

TEST(HumanBytes, PicksTheUnit) {
  EXPECT_EQ(counted(1, "device"), "1 device");
  EXPECT_EQ(counted(0, "job"), "0 jobs");
  EXPECT_EQ(counted(0.5, "device"), "0.5 devices");
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(3221225472.0), "3.0 GiB");
  EXPECT_EQ(human_bytes(5e18), "4440.9 PiB");
}

TEST(HumanBytes, NeverShows1024OfAUnit) {
  EXPECT_EQ(human_bytes(1024.0 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(human_bytes(1023.9 * 1024), "1023.9 KiB");
}

TEST(IndexRanges, JoinsNeighbours) {
  EXPECT_EQ(index_ranges({}), "");
  EXPECT_EQ(index_ranges(std::vector<int>{4}), "4");
  EXPECT_EQ(index_ranges(std::vector<int>{0, 1}), "0-1");
  EXPECT_EQ(index_ranges(std::vector<int>{0, 1, 2, 5}), "0-2,5");
  EXPECT_EQ(index_ranges(std::vector<int>{0, 2, 4, 5}), "0,2,4-5");
}

TEST(IndexRanges, ReadBackAsTheSame) {
  for (const std::vector<int>& indices : {std::vector<int>{}, {4}, {0, 1}, {0, 1, 2, 5}, {0, 2, 4, 5}, {65535}})
    EXPECT_EQ(parse_index_ranges(index_ranges(indices)), indices);
  for (const char* wrong : {",", "1,", "2,1", "1,1", "3-1", "-1", "1-", "1-2-3", "x", " 1", "0-65536", "0-2,2-3"})
    EXPECT_EQ(parse_index_ranges(wrong), std::nullopt) << wrong;
}

TEST(Printable, LeavesNothingATerminalObeys) {
  EXPECT_EQ(printable("A GPU \xc3\xa9"), "A GPU \xc3\xa9");
  EXPECT_EQ(printable("a\x1b[2Jb\n\x7f"), "a?[2Jb??");
  EXPECT_EQ(printable("\xc2\x9b"
                      "0m"),
            "?0m")
      << "a control character of C1";
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "?x");
}

TEST(Printable, ReplacesWhatTurnsTheDirectionOfWriting) {
  EXPECT_EQ(printable("a\u202egnp.exe"), "a?gnp.exe");
  EXPECT_EQ(printable("\u061c\u200e\u200f\u202a\u2066\u2069\u2028\u2029"), "????????");
  EXPECT_EQ(printable("\u05d0 \u0627 \u2027 \u202f \u2065 \u206a"), "\u05d0 \u0627 \u2027 \u202f \u2065 \u206a");
}

TEST(Printable, ReplacesBytesThatAreNotUtf8) {
  for (const char* wrong :
       {"\xff", "\xc0", "\xed\xa0\x80", "\xe0\x80\x80", "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\xc3"})
    EXPECT_THAT(printable(wrong), testing::MatchesRegex("\\?+")) << wrong;
  EXPECT_EQ(printable("\xf0\x9f\x90\x8e"), "\xf0\x9f\x90\x8e");
}

TEST(IsUtf8, RefusesWhatIsNotAndNothingElse) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\n\x1b \xc3\xa9 \xf0\x9f\x90\x8e"));
  for (const char* wrong : {"a\xff", "\xc3", "\xed\xa0\x80 b"}) EXPECT_FALSE(is_utf8(wrong)) << wrong;
}

}  // namespace
}  // namespace remuda
