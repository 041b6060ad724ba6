#include "cli/status_line.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/testing/manual_clock.h"

namespace remuda::cli {
namespace {

class StatusLineTest : public testing::Test {
 protected:
  StatusLineTest() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read_end_.reset(ends[0]), write_end_.reset(ends[1]);
  }
  std::string written() {
    char buffer[4096];
    const ssize_t got = ::read(read_end_.get(), buffer, sizeof buffer);
    return std::string(buffer, std::max<ssize_t>(got, 0));
  }
  int fd() const { return write_end_.get(); }
  void fill() {
    const std::string block(4096, 'x');
    while (::write(fd(), block.data(), block.size()) > 0) continue;
  }
  void make_blocking() { ::fcntl(fd(), F_SETFL, 0); }

  ManualClock clock_;

 private:
  Fd read_end_, write_end_;
};

TEST_F(StatusLineTest, QuietWritesNothing) {
  StatusLine line(StatusLine::Mode::quiet, fd(), clock_);
  line.print("epoch 1");
  line.update("step 1", 0.5);
  EXPECT_EQ(written(), "");
}

TEST_F(StatusLineTest, ElsewhereThanOnATerminalItIsALineEveryFiveSeconds) {
  StatusLine line(StatusLine::Mode::lines, fd(), clock_);
  line.update("step 1", 0.1);
  line.update("step 2", 0.2);
  clock_.sleep_s(4.9);
  line.update("step 3", 0.3);
  line.print("epoch 1");
  clock_.sleep_s(0.2);
  line.update("step 4", 0.4);
  EXPECT_EQ(written(), "step 1\nepoch 1\nstep 4\n");
}

TEST_F(StatusLineTest, OnATerminalLinesScrollAboveTheBarAndTheBarGoesAway) {
  {
    StatusLine line(StatusLine::Mode::bar, fd(), clock_);
    line.print("start");
    line.update("step 1", 0.5);
    EXPECT_EQ(written(), "start\n\r\x1b[K[==========          ] step 1");
    line.print("epoch 1");
    EXPECT_EQ(written(), "\r\x1b[Kepoch 1\n[==========          ] step 1");
  }
  EXPECT_EQ(written(), "\r\x1b[K");
}

TEST_F(StatusLineTest, AReaderThatTakesNothingIsNotWaitedForByAStatus) {
  for (const auto mode : {StatusLine::Mode::bar, StatusLine::Mode::lines}) {
    StatusLine line(mode, fd(), clock_);
    fill();
    make_blocking();
    line.update("step 1", 0.5);  // would never return
    ::fcntl(fd(), F_SETFL, O_NONBLOCK);
    while (written().starts_with("x")) continue;
  }
}

TEST_F(StatusLineTest, OnATerminalLongLinesAreFoldedAndElsewhereNot) {
  const std::string line(50, 'a'), lines = line + " " + line;
  StatusLine(StatusLine::Mode::bar, fd(), clock_).print(lines);
  EXPECT_EQ(written(), line + "\n    " + line + "\n");
  StatusLine(StatusLine::Mode::lines, fd(), clock_).print(lines);
  EXPECT_EQ(written(), lines + "\n");
}

TEST(Folded, BreaksAtSpacesAndIndentsWhatFollows) {
  EXPECT_EQ(folded("step 16: shares 195, 61: slower", 31), "step 16: shares 195, 61: slower");
  EXPECT_EQ(folded("step 16: shares 195, 61: slower", 30), "step 16: shares 195, 61:\n    slower");
  EXPECT_EQ(folded("step 16: shares 195, 61: slower", 16), "step 16: shares\n    195, 61:\n    slower");
  EXPECT_EQ(folded("größere größere", 10), "größere\n    größer\n    e") << "characters are not bytes";
  EXPECT_EQ(folded("0123456789abcdef", 10), "0123456789\n    abcdef");
  EXPECT_EQ(folded("narrow", 3), "narrow") << "no terminal is this narrow";
  EXPECT_EQ(folded("", 80), "");
}

TEST(BarText, LeavesTheBarOutAndCutsWhereItDoesNotFit) {
  EXPECT_EQ(bar_text("12345", 1.5, 28), "[====================] 12345");
  EXPECT_EQ(bar_text("12345", 1.0, 27), "12345");
  EXPECT_EQ(bar_text("measuring", -1, 80), "measuring");
  EXPECT_EQ(bar_text("a·b·c·d", 0.5, 6), "a·b...");
  EXPECT_EQ(bar_text("", 0.0, 0), "");
}

}  // namespace
}  // namespace remuda::cli
