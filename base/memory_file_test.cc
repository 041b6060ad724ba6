#include "base/memory_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace remuda {
namespace {

using testing::HasSubstr;

char byte_at(int fd, off_t at) {
  char byte = 0;
  return ::pread(fd, &byte, 1, at) == 1 ? byte : '?';
}

TEST(MemoryFile, IsOneMemoryInTwoProcesses) {
  const auto mine = MemoryFile::create();
  ASSERT_TRUE(mine) << mine.error().message;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto theirs = MemoryFile::open(mine->offer(), "the test's memory");
    ::_exit(theirs && ::pwrite(theirs->fd(), "x", 1, 100) == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(byte_at(mine->fd(), 100), 'x');
}

TEST(MemoryFile, OfAnotherTokenIsRefused) {
  const auto mine = MemoryFile::create();
  ASSERT_TRUE(mine);
  MemoryFile::Offer offer = mine->offer();
  offer.token[15] ^= std::byte{1};
  const auto other = MemoryFile::open(offer, "rank 3's memory");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("is another job's memory"));
}

TEST(MemoryFile, AnyOtherFileIsRefused) {
  const Fd zeros(::memfd_create("something else", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(zeros.get(), 4096), 0);
  const auto other = MemoryFile::open({::getpid(), zeros.get(), {}}, "rank 3's memory");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(zeros.get()) +
                                       " is not rank 3's memory: not the same host or user");
}

}  // namespace
}  // namespace remuda
