// The tests run in a child whose stdout and stderr are files, so that they can see what goes where.
#include "run/job_output.h"

#include <array>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/scratch_folder.h"

namespace remuda::run {
namespace {

constexpr double kOutputPatience_s = 30;

class JobOutputTest : public testing::Test {
 protected:
  /// Runs `write` on an output of two lanes. `out`: in place of the file "out".
  void run(const std::function<void(JobOutput&)>& write, int out = -1) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(out >= 0 ? out : open("out").release(), STDOUT_FILENO);
      ::dup2(open("err").release(), STDERR_FILENO);
      {
        auto output = JobOutput::copy(2, {open("log"), true, true});
        if (output) write(*output);
        if (output) output->finish(kOutputPatience_s);
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

TEST_F(JobOutputTest, IsNoLogThatAnotherUserHasPutInAFolderOfAll) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kStranger = 61004;
  const std::string folder = folder_.path("all"), aim = folder_.path("aim");
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(::chown(folder.c_str(), 61005, 0), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 01777), 0);
  RunSpec link, file, own;
  link.job.log = folder + "/link", file.job.log = folder + "/file", own.job.log = folder + "/own";
  ASSERT_EQ(::symlink(aim.c_str(), link.job.log.c_str()), 0);
  ASSERT_EQ(::lchown(link.job.log.c_str(), kStranger, kStranger), 0);
  ASSERT_TRUE(Fd(::open(file.job.log.c_str(), O_WRONLY | O_CREAT, 0666)));
  ASSERT_EQ(::chown(file.job.log.c_str(), kStranger, kStranger), 0);
  for (const mode_t mode : {01777, 0777}) {
    ASSERT_EQ(::chmod(folder.c_str(), mode), 0);
    for (const RunSpec& spec : {link, file}) {
      const auto log = open_log(spec, 1);
      ASSERT_FALSE(log);
      EXPECT_NE(log.error().message.find(", in a folder that all may write"), std::string::npos);
    }
  }
  EXPECT_NE(::access(aim.c_str(), F_OK), 0);
  EXPECT_TRUE(open_log(own, 1));
  EXPECT_TRUE(open_log(own, 1)) << "it is there now";
}

TEST_F(JobOutputTest, MixesWholeLines) {
  run([](JobOutput& output) {
    put(output.out(0), "one ");
    put(output.out(1), "two\n");
    ::usleep(50'000);  // the result is the same without it
    put(output.out(0), "line\n");
  });
  const std::string out = folder_.read("out");
  EXPECT_TRUE(out == "two\none line\n" || out == "one line\ntwo\n") << out;
}

TEST_F(JobOutputTest, KeepsTheStreamsApartAndLogsBoth) {
  run([](JobOutput& output) {
    put(output.out(0), "out\n");
    put(output.err(1), "err\n");
  });
  EXPECT_EQ(folder_.read("out"), "out\n");
  EXPECT_EQ(folder_.read("err"), "err\n");
  EXPECT_EQ(folder_.read("log").size(), 8U);
}

TEST_F(JobOutputTest, LosesNothingOfALineWithoutEnd) {
  const std::string line(300'000, 'x');
  run([&](JobOutput& output) {
    put(output.out(0), line);
    put(output.out(1), "short");
  });
  EXPECT_EQ(folder_.read("out").size(), line.size() + 5);
}

TEST_F(JobOutputTest, GoesOnToTheLogWhenItsReaderIsGone) {
  run([](JobOutput& output) {
    ::close(STDOUT_FILENO);
    put(output.out(0), "one\n");
    put(output.err(0), "two\n");
  });
  EXPECT_EQ(folder_.read("err"), "two\n");
  EXPECT_EQ(folder_.read("log").size(), 8U);
}

/// A pipe whose read end stays open, and is never read.
struct OutputReader {
  OutputReader() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
  Fd read_end, write_end;
};

TEST_F(JobOutputTest, LogsAllAndEndsWhereNobodyReads) {
  const std::string much(200'000, 'x');  // more than fits into a pipe that is not read
  const OutputReader pipe;
  const auto write = [&](JobOutput& output) {
    const pid_t writer = ::fork();
    if (writer == 0) {
      put(output.out(0), much.substr(0, 100'000));
      ::_exit(0);
    }
    ::waitpid(writer, nullptr, 0);
    put(output.err(1), "the other stream goes on\n");
    if (output.finish(0.5)) ::_exit(3);
    (void)write_all(open("err").get(), folder_.read("log").size() == 100'025 ? "logged\n" : "lost\n", "the test");
    const double before_s = monotonic_s();
    {
      const JobOutput given_up = std::move(output);
    }
    if (monotonic_s() - before_s > kOutputPatience_s) ::_exit(4);
  };
  run(write, pipe.write_end.get());
  EXPECT_EQ(folder_.read("err"), "the other stream goes on\nlogged\n");
}

TEST_F(JobOutputTest, WaitsForASlowReaderThatIsThere) {
  const OutputReader pipe;
  const auto write = [&](JobOutput& output) {
    put(output.out(0), std::string(50'000, 'x'));
    put(output.out(1), std::string(50'000, 'y'));
    if (output.finish(0.1)) ::_exit(3);
    size_t read = 0;
    std::array<char, 4096> bytes;
    while (read < 100'000) {
      const ssize_t got = ::read(pipe.read_end.get(), bytes.data(), bytes.size());
      if (got > 0) read += static_cast<size_t>(got);
    }
    if (!output.finish(kOutputPatience_s)) ::_exit(4);
  };
  run(write, pipe.write_end.get());
}

}  // namespace
}  // namespace remuda::run
