#include "topology/svg_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::topology::svg {
namespace {

using testing::ElementsAre;

TEST(SvgEscape, LeavesNothingThatIsMarkup) {
  EXPECT_EQ(escape(R"(<script>"&'</script>)"), "&lt;script&gt;&quot;&amp;&#39;&lt;/script&gt;");
  EXPECT_EQ(escape("a\x1b[31m\x01"), "a?[31m?");
  EXPECT_EQ(escape("a\xff"), "a?");
  EXPECT_EQ(escape("é·—"), "é·—");
}

TEST(SvgFit, ClipsWholeLetters) {
  EXPECT_EQ(fit("abcdef", 100, 10), "abcdef");
  EXPECT_EQ(fit("ääääääää", 28.5, 10), "ääää…");
  EXPECT_EQ(fit("abc", 0, 10), "…");
  EXPECT_EQ(fit("", 0, 10), "");
}

TEST(SvgWrap, BreaksAtSpacesAndDashes) {
  EXPECT_THAT(wrap("GeForce RTX 4090", 62.7, 10, 2), ElementsAre("GeForce RTX", "4090"));
  EXPECT_THAT(wrap("A100-SXM4-80GB", 62.7, 10, 2), ElementsAre("A100-SXM4-", "80GB"));
  EXPECT_THAT(wrap("abcdefghijklmnopqrstuvwxyz", 57, 10, 2), ElementsAre("abcdefghi…"));
  EXPECT_THAT(wrap("one two three four", 28.5, 10, 2), ElementsAre("one", "two …"));
  EXPECT_TRUE(wrap("", 50, 10, 2).empty());
}

TEST(SvgNumber, IsShort) {
  EXPECT_EQ(number(24), "24");
  EXPECT_EQ(number(12.25), "12.3");
  EXPECT_EQ(number(-0.01), "0");
  EXPECT_EQ(number(1234.56), "1234.6");
}

}  // namespace
}  // namespace remuda::topology::svg
