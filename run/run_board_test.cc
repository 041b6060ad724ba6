#include "run/run_board.h"

#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"

namespace remuda::run {
namespace {

pool::RunNotice notice(int64_t step) {
  return {.step = step,
          .steps = 100,
          .step_s = 0.5,
          .parts = {{"GPU-1", 0.75, 0.1}, {"GPU-2", 0.25, 0.2}},
          .checkpoint_step = step / 2,
          .checkpoint_age_s = 30,
          .checkpoint_every_s = 60};
}

TEST(RunBoard, HasWhatWasWrittenLast) {
  RunBoard board;
  EXPECT_FALSE(board.read()) << "nothing yet";
  write_notice(board.fd(), notice(1'000'000));
  write_notice(board.fd(), notice(7));
  EXPECT_EQ(board.read(), notice(7));
  EXPECT_FALSE(board.read()) << "nothing new";
  write_notice(board.fd(), notice(8));
  EXPECT_EQ(board.read(), notice(8));
  struct stat before{};
  ASSERT_EQ(::fstat(board.fd(), &before), 0);
  write_notice(board.fd(), notice(9));
  const timespec times[]{before.st_atim, before.st_mtim};
  ASSERT_EQ(::futimens(board.fd(), times), 0);
  EXPECT_EQ(board.read(), notice(9)) << "within one tick of the clock that files have";
}

// One that waits for others has the same to say for long, and it counts as long as it says so.
TEST(RunBoard, HasWhatWasWrittenAgain) {
  RunBoard board;
  write_notice(board.fd(), notice(7));
  EXPECT_EQ(board.read(), notice(7));
  ::usleep(20'000);  // more than a tick of the clock that files have
  write_notice(board.fd(), notice(7));
  EXPECT_EQ(board.read(), notice(7));
  EXPECT_FALSE(board.read());
}

TEST(RunBoard, TakesNothingThatIsNoNotice) {
  for (const char* text : {"", "{", "[]", "{\"step\": \"seven\"}", "{\"parts\": [{\"share\": 1}]}", "\xff\xfe"}) {
    RunBoard board;
    EXPECT_EQ(::pwrite(board.fd(), text, std::char_traits<char>::length(text), 0) >= 0, true);
    EXPECT_FALSE(board.read()) << text;
  }
  RunBoard board;
  const std::string wild = R"({"step": 1, "step_s": -3, "parts": [{"device": "d", "share": 7, "waiting": -1}]})";
  EXPECT_GT(::pwrite(board.fd(), wild.data(), wild.size(), 0), 0);
  const auto read = board.read();
  ASSERT_TRUE(read);
  EXPECT_EQ((std::pair{read->parts[0].share, read->parts[0].waiting}), (std::pair{1.0, 0.0}));
  EXPECT_EQ(read->step_s, 0);
  EXPECT_EQ(read->checkpoint_every_s, 0) << "it says nothing of checkpoints";
  const std::string endless = R"({"checkpoint_step": -1, "checkpoint_age_s": 1e300, "checkpoint_every_s": -1})";
  EXPECT_EQ(::pwrite(board.fd(), endless.data(), endless.size(), 0), std::ssize(endless));
  EXPECT_EQ(::ftruncate(board.fd(), std::ssize(endless)), 0);
  EXPECT_EQ(board.read(), (pool::RunNotice{.checkpoint_age_s = pool::RunNotice::kLongestAge_s}));
  const std::string large = R"({"step": 1, "steps": )" + std::string(1 << 20, ' ') + "2}";
  EXPECT_GT(::pwrite(board.fd(), large.data(), large.size(), 0), 0);
  EXPECT_FALSE(board.read()) << "so much is not read";
}

TEST(RunBoard, IsFoundByItsProcessesAndNothingElseIsTakenForIt) {
  ::unsetenv(env::run_fd.name);
  EXPECT_EQ(run_board_fd(), -1);
  const RunBoard board;
  ::setenv(env::run_fd.name, std::to_string(board.fd()).c_str(), 1);
  EXPECT_EQ(run_board_fd(), board.fd());
  const Fd other(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ::setenv(env::run_fd.name, std::to_string(other.get()).c_str(), 1);
  EXPECT_EQ(run_board_fd(), -1) << "a program has closed it, and opened something else";
  ::setenv(env::run_fd.name, "many", 1);
  EXPECT_EQ(run_board_fd(), -1);
  ::unsetenv(env::run_fd.name);
}

}  // namespace
}  // namespace remuda::run
