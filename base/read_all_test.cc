#include "base/read_all.h"

#include <array>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"

namespace remuda {
namespace {

constexpr double kShort_s = 0.01, kLong_s = 60;
constexpr size_t kLimit = 1 << 20;

struct Pair {
  Fd here, there;
};

Pair pipe_ends() {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

Pair socket_ends() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

TEST(ReadAll, WaitsForASlowWriterOfAPipeOrSocket) {
  for (Pair& ends : std::array{pipe_ends(), socket_ends()}) {
    std::thread writer([&] {
      for (const char* part : {"one ", "two"}) {
        std::this_thread::yield();
        (void)write_all(ends.there.get(), part, "it");
      }
      ends.there.reset();
    });
    EXPECT_EQ(read_all(ends.here.get(), "it", kLimit, kLong_s).value(), "one two");
    writer.join();
  }
}

TEST(ReadAll, GivesUpOnASilentOne) {
  const Pair ends = pipe_ends();
  ASSERT_TRUE(write_all(ends.there.get(), "the beginning", "it"));
  EXPECT_EQ(read_all(ends.here.get(), "it", kLimit, kShort_s).error().message,
            "cannot read it: nobody has written to it for 0.01 s; it must be a file, or be written to");
}

TEST(ReadAll, GivesUpOnAPipeThatNobodyOpensForWriting) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  const Fd pipe(::open(folder.path("pipe").c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_FALSE(read_all(pipe.get(), "it", kLimit, kShort_s));
  const Fd writer(::open(folder.path("pipe").c_str(), O_WRONLY));
  ASSERT_TRUE(write_all(writer.get(), "late", "it"));
  EXPECT_FALSE(read_all(pipe.get(), "it", kLimit, kShort_s)) << "its writer is silent";
}

TEST(ReadAll, TakesTheLimitAndNotAByteMore) {
  const auto read_three = [](size_t limit) {
    Pair ends = pipe_ends();
    EXPECT_TRUE(write_all(ends.there.get(), "abc", "it"));
    ends.there.reset();
    return read_all(ends.here.get(), "it", limit, kForever_s);
  };
  EXPECT_EQ(read_three(3).value(), "abc");
  EXPECT_EQ(read_three(2).error().message, "cannot read it: it is larger than 2 B");
}

TEST(ReadAll, OfWhatIsNotOpenIsAnError) {
  const int closed = pipe_ends().here.get();
  EXPECT_EQ(read_all(closed, "it", kLimit, kShort_s).error().message, "cannot read it: Bad file descriptor");
}

}  // namespace
}  // namespace remuda
