#include "cli/terminal.h"

#include <gtest/gtest.h>

#include "base/table.h"

namespace remuda::cli {
namespace {

TEST(Fitted, BreaksLongLinesBetweenWords) {
  EXPECT_EQ(fitted("one two three four\nfive\n", 10), "one two\nthree four\nfive\n");
  EXPECT_EQ(fitted("one two three four", 13), "one two three\nfour");
  EXPECT_EQ(fitted("a  word-that-is-longer-than-a-line and more", 12),
            "a  word-that-is-longer-than-a-line\n   and more");
}

TEST(Fitted, GoesOnWhereTheTextOfTheLineBegan) {
  EXPECT_EQ(fitted("ring      10 GB/s at its slowest link", 24), "ring      10 GB/s at its\n          slowest link");
  EXPECT_EQ(fitted("    indented text of a line", 16), "    indented\n    text of a\n    line");
}

TEST(Fitted, PutsWhatStandsFarRightBelow) {
  EXPECT_EQ(fitted("  remuda run -n 2 -- python train.py    on the best two", 40),
            "  remuda run -n 2 -- python train.py\n      on the best two");
  EXPECT_EQ(fitted("  remuda run -- python a.py    one two three", 30),
            "  remuda run -- python a.py\n      one two three");
  EXPECT_EQ(fitted("no indentation at all here    and more", 30), "no indentation at all here\nand more");
}

TEST(Unbroken, JoinsTheLinesOfAParagraph) {
  const std::string full(70, 'x');
  EXPECT_EQ(unbroken(full + "\nand more\n\nNext\nline\n"), full + " and more\n\nNext\nline\n");
  const std::string indented = full + "\n  indented\n  " + full + "\n  again\n" + full + "\n\nend";
  EXPECT_EQ(unbroken(indented), indented);
}

TEST(Fitted, KeepsWhatFits) {
  const std::string text = "  FAIL  a      b\n\n  two\n";
  EXPECT_EQ(fitted(text, 16), text);
  EXPECT_EQ(fitted(text, Table::kAnyWidth), text);
  EXPECT_EQ(fitted("", 5), "");
}

TEST(Fitted, DoesNotCountColours) {
  EXPECT_EQ(fitted("  \x1b[31mFAIL\x1b[0m  one two", 15), "  \x1b[31mFAIL\x1b[0m  one two");
  EXPECT_EQ(fitted("  \x1b[31mFAIL\x1b[0m  one two three", 16), "  \x1b[31mFAIL\x1b[0m  one two\n        three");
}

TEST(Fitted, CountsCharactersAndNotBytes) { EXPECT_EQ(fitted("öö öö öö", 5), "öö öö\nöö"); }

}  // namespace
}  // namespace remuda::cli
