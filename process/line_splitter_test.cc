#include "process/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace remuda::process {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Lines {
  std::vector<std::string> whole, dropped;
  LineSplitter::OnLine sink() {
    return [this](std::string_view line, bool too_long) { (too_long ? dropped : whole).emplace_back(line); };
  }
};

TEST(LineSplitter, CutsWhereverTheBytesArriveFrom) {
  const std::string text = "one\n\nthree\nfour";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    Lines lines;
    LineSplitter splitter(100);
    for (size_t at = 0; at < text.size(); at += piece) splitter.feed(text.substr(at, piece), lines.sink());
    EXPECT_THAT(lines.whole, ElementsAre("one", "", "three")) << piece;
    splitter.finish(lines.sink());
    EXPECT_THAT(lines.whole, ElementsAre("one", "", "three", "four")) << piece;
  }
}

TEST(LineSplitter, DropsLongLinesAndGoesOn) {
  for (const size_t piece : {1, 3, 7, 100}) {
    Lines lines;
    LineSplitter splitter(5);
    const std::string text = "12345\n123456\nok\n";
    for (size_t at = 0; at < text.size(); at += piece) splitter.feed(text.substr(at, piece), lines.sink());
    EXPECT_THAT(lines.whole, ElementsAre("12345", "ok")) << piece;
    EXPECT_THAT(lines.dropped, ElementsAre("12345")) << piece;
  }
}

TEST(LineSplitter, AnEmptyStreamHasNoLine) {
  Lines lines;
  LineSplitter(5).finish(lines.sink());
  EXPECT_THAT(lines.whole, IsEmpty());
}

}  // namespace
}  // namespace remuda::process
