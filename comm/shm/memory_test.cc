#include "comm/shm/memory.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/testing/socket_pair.h"

namespace remuda::comm::shm {
namespace {

using testing::HasSubstr;

constexpr size_t kPageBytes = 4096;
constexpr int kBoth[] = {0, 1};

TEST(Memory, IsFoundByTheRanksOfThisProcess) {
  const auto memory = Memory::create();
  ASSERT_TRUE(memory);
  const auto again = Memory::open((*memory)->offer());
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *memory);
}

TEST(Memory, OfAnotherProcessIsNotTakenForThatOfThisOne) {
  const auto memory = Memory::create();
  ASSERT_TRUE(memory);
  Offer offer = (*memory)->offer();
  offer.pid = ::getppid();
  offer.fd = 1 << 20;
  EXPECT_FALSE(Memory::open(offer));
}

TEST(Memory, GrowsWithZerosAndKeepsWhatIsThere) {
  const auto memory = Memory::create();
  ASSERT_TRUE(memory);
  const auto first = (*memory)->map(kPageBytes, kPageBytes);
  ASSERT_TRUE(first);
  std::memset(*first, 7, kPageBytes);
  const auto second = (*memory)->map(2 * kPageBytes, 5 * kPageBytes);
  ASSERT_TRUE(second);
  for (size_t i = 0; i < 5 * kPageBytes; ++i) ASSERT_EQ((*second)[i], std::byte{0});
  EXPECT_EQ(*(*memory)->map(kPageBytes, kPageBytes), *first) << "asked for again";
  EXPECT_EQ((*first)[kPageBytes - 1], std::byte{7});
}

/// Rank 1 is another process; `hinder` may prevent it from opening the memory. Its exit status says whether it
/// succeeded.
Result<std::shared_ptr<Memory>> share_with_process(void (*hinder)(), int& status) {
  SocketPair pair;
  const pid_t child = ::fork();
  if (child == 0) {
    Mesh mesh(1, 2, {});
    mesh.control[0] = std::move(pair.second);
    hinder();
    const auto memory = share_memory(mesh, kBoth, 30);
    const auto bytes = memory ? (*memory)->map(kPageBytes, kPageBytes) : Result<std::byte*>(failed(""));
    if (bytes) **bytes = std::byte{9};
    ::_exit(bytes ? 0 : memory || memory.error().kind != ErrorKind::failed ? 2 : 1);
  }
  Mesh mesh(0, 2, {});
  mesh.control[1] = std::move(pair.first);
  auto memory = share_memory(mesh, kBoth, 30);
  ::waitpid(child, &status, 0);
  status = WEXITSTATUS(status);
  return memory;
}

TEST(Memory, IsSharedWithAnotherProcess) {
  int status = 0;
  const auto memory = share_with_process([] {}, status);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(status, 0);
  EXPECT_EQ(**(*memory)->map(kPageBytes, kPageBytes), std::byte{9}) << "what rank 1 wrote";
}

TEST(Memory, AllRanksKnowWhichOneCannotHaveIt) {
  const auto hinder = [] {
    const rlimit none{1, 1};  // enough for poll() of one
    ::setrlimit(RLIMIT_NOFILE, &none);
  };
  int status = 0;
  const auto memory = share_with_process(hinder, status);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().kind, ErrorKind::failed) << "another transport may do";
  EXPECT_THAT(memory.error().message, HasSubstr("rank 1 cannot share memory with rank 0: cannot open /proc/"));
  EXPECT_EQ(status, 1);
}

}  // namespace
}  // namespace remuda::comm::shm
