#include "top/cells.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace remuda::top {
namespace {

std::string shown(std::string_view text, Charset charset = Charset::utf8) { return text_of(cells_of(text, charset)); }

TEST(TopCells, NoControlCharacterBecomesACell) {
  EXPECT_EQ(shown("a\x1b[31mred\r\n\x07z\x7f"), "a?[31mred???z?");
  EXPECT_EQ(shown("\xc2\x9b"
                  "2J"),
            "?2J")
      << "those of C1, too";
  EXPECT_EQ(shown("tab\there"), "tab here");
  EXPECT_EQ(shown("bro\xffken\xc3"), "bro?ken?");
}

TEST(TopCells, WhatTurnsTheDirectionIsMarkedAndWhatIsNotSeenIsLeftOut) {
  EXPECT_EQ(shown("a\u202eb\u2066c\u200bd\ufeff"
                  "e"),
            "a?b?cde");
  EXPECT_EQ(shown("\u202e"), "?");
}

TEST(TopCells, AWideCharacterTakesTwo) {
  const Cells cells = cells_of("a漢b", Charset::utf8);
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[1].text, "漢");
  EXPECT_EQ(cells[2].text, "");
  EXPECT_EQ(text_of(cells), "a漢b");
}

TEST(TopCells, AMarkStandsWithItsCharacterAndTowersOfThemAreCut) {
  EXPECT_EQ(cells_of("e\u0301a", Charset::utf8).size(), 2u);
  std::string tower = "e";
  for (int i = 0; i < 100; ++i) tower += "\u0301";
  const Cells cells = cells_of(tower, Charset::utf8);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_LE(cells[0].text.size(), 12u);
  EXPECT_TRUE(cells_of("\u0301", Charset::utf8).empty()) << "with nothing to stand on";
}

TEST(TopCells, AsciiShowsAQuestionMarkForTheRest) { EXPECT_EQ(shown("añ漢e\u0301", Charset::ascii), "a??e"); }

TEST(TopCells, CutWhereThereIsTooLittleRoom) {
  const auto cut = [](std::string_view text, size_t width, Charset charset = Charset::utf8) {
    return text_of(fitted(cells_of(text, charset), width, charset));
  };
  EXPECT_EQ(cut("diffusion", 9), "diffusion");
  EXPECT_EQ(cut("diffusion", 5), "diff…");
  EXPECT_EQ(cut("diffusion", 5, Charset::ascii), "diff~");
  EXPECT_EQ(cut("漢字漢", 4), "漢 …") << "no half of a wide one is left";
  EXPECT_EQ(cut("x", 0), "");
  EXPECT_EQ(text_of(fitted_right(cells_of("93%", Charset::utf8), 5, Charset::utf8)), "  93%");
}

TEST(TopCells, LinesAreBrokenBetweenWords) {
  const auto lines = [](std::string_view text, size_t width, size_t indent) {
    std::vector<std::string> all;
    for (const Cells& line : wrapped(text, width, indent, Charset::utf8)) all.push_back(text_of(line));
    return all;
  };
  EXPECT_EQ(lines("one two three", 8, 2), (std::vector<std::string>{"one two", "  three"}));
  EXPECT_EQ(lines("  one two", 6, 4), (std::vector<std::string>{"  one", "    tw", "    o"}));
  EXPECT_EQ(lines("a", 8, 2), (std::vector<std::string>{"a"}));
  EXPECT_EQ(lines("abcdefghij", 4, 1), (std::vector<std::string>{"abcd", " efg", " hij"}));
  EXPECT_EQ(lines("", 8, 2), (std::vector<std::string>{""}));
}

RC_GTEST_PROP(TopCells, AnyBytesKeepTheWidth, (const std::string& bytes, bool is_utf8)) {
  const Charset charset = is_utf8 ? Charset::utf8 : Charset::ascii;
  const size_t width = *rc::gen::inRange<size_t>(0, 40);
  RC_ASSERT(fitted(cells_of(bytes, charset), width, charset).size() == width);
  for (const Cells& line : wrapped(bytes, width + 1, width / 2, charset)) RC_ASSERT(line.size() <= width + 1);
  for (const Cell& cell : cells_of(bytes, charset))
    for (const char byte : cell.text) RC_ASSERT(static_cast<unsigned char>(byte) >= 0x20 && byte != 0x7f);
}

}  // namespace
}  // namespace remuda::top
