// What goes where is seen in a child, whose stdout and stderr are files.
#include "run/task_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/program.h"

namespace remuda::tests {
namespace {

class TaskOutputTest : public testing::Test {
 protected:
  /// Runs `write` on an output of two lanes.
  void run(const std::function<void(const run::TaskOutput&)>& write) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(open("out").release(), STDOUT_FILENO);
      ::dup2(open("err").release(), STDERR_FILENO);
      {
        const auto output = run::TaskOutput::open(2, {open("log"), true});
        if (output) write(*output);
      }
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  Fd open(const char* name) const {
    return Fd(::open(folder_.path(name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  }
  static void put(int fd, const std::string& text) { (void)write_all(fd, text, "the test"); }

  ScratchFolder folder_;
};

TEST_F(TaskOutputTest, MixesWholeLines) {
  run([](const run::TaskOutput& output) {
    put(output.out(0), "one ");
    put(output.out(1), "two\n");
    ::usleep(50'000);  // the outcome is the same without
    put(output.out(0), "line\n");
  });
  const std::string out = folder_.read("out");
  EXPECT_TRUE(out == "two\none line\n" || out == "one line\ntwo\n") << out;
}

TEST_F(TaskOutputTest, KeepsTheStreamsApartAndLogsBoth) {
  run([](const run::TaskOutput& output) {
    put(output.out(0), "out\n");
    put(output.err(1), "err\n");
  });
  EXPECT_EQ(folder_.read("out"), "out\n");
  EXPECT_EQ(folder_.read("err"), "err\n");
  EXPECT_EQ(folder_.read("log").size(), 8U);
}

TEST_F(TaskOutputTest, LosesNothingOfALineWithoutEnd) {
  const std::string line(300'000, 'x');
  run([&](const run::TaskOutput& output) {
    put(output.out(0), line);
    put(output.out(1), "short");
  });
  EXPECT_EQ(folder_.read("out").size(), line.size() + 5);
}

TEST_F(TaskOutputTest, GoesOnToTheLogWhenItsReaderIsGone) {
  run([](const run::TaskOutput& output) {
    ::close(STDOUT_FILENO);
    put(output.out(0), "one\n");
    put(output.err(0), "two\n");
  });
  EXPECT_EQ(folder_.read("err"), "two\n");
  EXPECT_EQ(folder_.read("log").size(), 8U);
}

}  // namespace
}  // namespace remuda::tests
