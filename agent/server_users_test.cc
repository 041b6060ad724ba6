// To whom connections are counted.
#include <algorithm>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "agent/testing/server_fixture.h"

namespace remuda::agent {
namespace {

/// As which this thread makes connections.
class AsUser {
 public:
  explicit AsUser(int uid) { set(uid); }
  AsUser(const AsUser&) = delete;
  ~AsUser() { set(0); }

 private:
  static void set(int uid) { EXPECT_EQ(::syscall(SYS_setresuid, -1, uid, -1), 0); }
};

TEST_F(ServerTest, TheUserIdsOfOnesContainersAreCountedAsOneUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root is other users";
  constexpr int kConnections = 12, kFirst = 100'000, kOther = 300'000;
  constexpr size_t kMost = 4;
  running_.reset();
  folder_.write("subuid", "eve:100000:65536\n");
  const auto look_up = [](int uid) { return Account{{std::to_string(uid), {}}, uid}; };
  running_.emplace(pool_, socket_, Limits{.idle_of_user = kMost}, look_up, Bearers(folder_.path("subuid")));
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(socket_.c_str(), 0666), 0);
  const auto greeted = [this](int uid) {
    const AsUser user(uid);
    Fd socket = raw();
    const std::string hello = wire::frame_of(wire::text_of(wire::Request{.id = "a", .protocol = wire::kProtocol}));
    EXPECT_GT(::send(socket.get(), hello.data(), hello.size(), 0), 0);
    char bytes[1024];
    EXPECT_GT(::recv(socket.get(), bytes, sizeof bytes, 0), 0);
    return socket;
  };
  const Fd other = greeted(kOther);
  std::vector<Fd> sockets;
  for (int i = 0; i < kConnections; ++i) sockets.push_back(greeted(kFirst + i));
  const auto is_open = [](const Fd& socket) {
    char byte = 0;
    return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT) != 0;
  };
  EXPECT_LE(std::ranges::count_if(sockets, is_open), static_cast<std::ptrdiff_t>(kMost));
  EXPECT_TRUE(is_open(sockets.back()));
  EXPECT_TRUE(is_open(other));
}

}  // namespace
}  // namespace remuda::agent
