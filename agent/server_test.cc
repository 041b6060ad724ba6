#include "agent/server.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "agent/testing/server_fixture.h"
#include "base/clock.h"
#include "base/testing/scratch_folder.h"
#include "wire/client.h"

namespace remuda::agent {
namespace {

using testing::HasSubstr;

TEST_F(ServerTest, AJobIsSubmittedSeenAndCancelled) {
  const auto user = client();
  EXPECT_EQ(user->folder(), pool_);
  const auto submitted = user->apply(pool::Submit{.job = job_for("mine")});
  ASSERT_TRUE(submitted) << submitted.error().message;
  const auto job = user->find(submitted->job);
  ASSERT_TRUE(job && *job);
  EXPECT_EQ((*job)->name, "mine");
  EXPECT_EQ((*job)->user, "ada");
  EXPECT_EQ((*job)->uid, static_cast<int>(::getuid()));
  EXPECT_EQ((*job)->keeper, process::own_process_id());
  EXPECT_EQ(user->read()->jobs.size(), 1U);
  EXPECT_EQ(user->read_own()->jobs.size(), 1U);
  EXPECT_EQ(user->read_around(submitted->job)->jobs.size(), 1U);
  EXPECT_EQ(user->apply(pool::Cancel{{submitted->job, 99}})->refused, std::vector<std::string>{"there is no job 99"});
  EXPECT_EQ((*user->find(submitted->job))->state, pool::JobState::ended);
  EXPECT_EQ(user->ended(10)->size(), 1U);
  EXPECT_EQ(*user->find(1234), std::nullopt);
}

TEST_F(ServerTest, WhoeverWaitsForAJobHearsOfItsEnd) {
  const auto keeper = client(), other = client();
  const int64_t job = keeper->apply(pool::Submit{.job = job_for("waits")})->job;
  while ((*keeper->find(job))->why.empty()) ASSERT_TRUE(keeper->wait(job, {}, 10, {}));
  ASSERT_TRUE(other->apply(pool::Cancel{{job}}));
  const double start_s = monotonic_s();
  while ((*keeper->find(job))->state != pool::JobState::ended) ASSERT_TRUE(keeper->wait(job, {}, 60, {}));
  EXPECT_LT(monotonic_s() - start_s, 50) << "the wait did not end by itself";
}

TEST_F(ServerTest, AJobThatMayNotWaitIsRefusedAfterALookAtTheMachine) {
  const auto refused = client()->apply(pool::Submit{.job = job_for("now"), .waits = false});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::not_now);
  EXPECT_TRUE(client()->read()->jobs.empty());
  pool::Job never = job_for("never");
  never.request.count = 2;
  EXPECT_EQ(client()->apply(pool::Submit{.job = never}).error().kind, ErrorKind::never);
}

TEST_F(ServerTest, AClientGoesOnWithAnAgentThatWasStartedAnew) {
  const auto user = client();
  const int64_t first = user->apply(pool::Submit{.job = job_for("first")})->job;
  running_.reset();
  EXPECT_FALSE(user->find(first)) << "a keeper that looks at its job does not wait for it";
  EXPECT_TRUE(user->may_try_again());
  std::thread later([this] {
    ::usleep(200'000);
    running_.emplace(pool_, socket_);
  });
  const auto second = user->apply(pool::Submit{.job = job_for("second")});
  later.join();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(user->read()->jobs.size(), 2U);
  EXPECT_EQ((*user->find(first))->name, "first");
}

TEST_F(ServerTest, ARequestThatIsSentAgainSubmitsOnceAlsoToTheNextAgent) {
  const std::string request = wire::frame_of(wire::text_of(
      wire::Request{.id = "same", .ask = wire::Ask::apply, .operation = pool::Submit{.job = job_for("once")}}));
  for (int turn = 0; turn < 3; ++turn) {
    if (turn == 2) {
      running_.reset();
      running_.emplace(pool_, socket_);
    }
    const Fd socket = raw();
    ASSERT_EQ(::send(socket.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    char bytes[1024];
    ASSERT_GT(::recv(socket.get(), bytes, sizeof bytes, 0), 0);
  }
  EXPECT_EQ(client()->read()->jobs.size(), 1U);
}

TEST_F(ServerTest, WhatIsNoRequestIsAnsweredOnceAndTheConnectionClosed) {
  for (const std::string& bytes :
       {std::string(4, '\0'), std::string(4, '\xff'), wire::frame_of("{}"), wire::frame_of(std::string(1000, '['))}) {
    const Fd socket = raw();
    ASSERT_GT(::send(socket.get(), bytes.data(), bytes.size(), 0), 0);
    EXPECT_THAT(all_of(socket), HasSubstr("\"error\""));
  }
  EXPECT_TRUE(client()->read());
}

TEST_F(ServerTest, RequestsThatComeAheadOfTheirAnswersAreServedInTurn) {
  const Fd socket = raw();
  std::string bytes;
  constexpr int kMany = 500;
  for (int i = 0; i < kMany; ++i)
    bytes += wire::frame_of(wire::text_of(wire::Request{.id = "r" + std::to_string(i), .ask = wire::Ask::read}));
  ASSERT_EQ(::send(socket.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  wire::FrameReader reader(wire::kLargestAnswer);
  for (int got = 0; got < kMany;) {
    char part[4096];
    const ssize_t size = ::recv(socket.get(), part, sizeof part, 0);
    ASSERT_GT(size, 0);
    reader.add({part, static_cast<size_t>(size)});
    for (auto next = reader.next(); next && *next; next = reader.next())
      EXPECT_EQ(wire::parse_answer(**next)->id, "r" + std::to_string(got++));
  }
}

TEST_F(ServerTest, OfTooManyIdleConnectionsTheOldestIsClosed) {
  running_.reset();
  running_.emplace(pool_, socket_, Limits{.connections = 100, .connections_of_user = 50, .idle_of_user = 4});
  std::vector<Fd> idle;
  for (int i = 0; i < 5; ++i) {
    idle.push_back(raw());
    EXPECT_TRUE(client()->read()) << "each new one is served";
  }
  EXPECT_EQ(all_of(idle.front()), "") << "it was closed";
}

TEST_F(ServerTest, ARequestThatIsSmallIsServedWhateverElseIsBuffered) {
  running_.reset();
  running_.emplace(pool_, socket_, Limits{.buffered_of_user = 1});
  const auto user = client();
  ASSERT_TRUE(user);
  EXPECT_TRUE(user->read());
}

/// A child of another user with so many connections, which ends with this object.
class Crowd {
 public:
  Crowd(const std::string& socket, int uid, int connections) {
    int ready[2];
    EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    child_ = ::fork();
    if (child_ == 0) connect(address_of(socket), uid, connections, ready[1]);
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  ~Crowd() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

 private:
  [[noreturn]] static void connect(const sockaddr_un& address, int uid, int connections, int ready) {
    if (::setresuid(uid, uid, uid) != 0) ::_exit(1);
    for (int i = 0; i < connections; ++i)
      if (::connect(::socket(AF_UNIX, SOCK_STREAM, 0), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
          0)
        ::_exit(1);
    (void)!::write(ready, "x", 1);
    for (;;) ::pause();
  }
  pid_t child_ = 0;
};

TEST_F(ServerTest, WhoHasMostConnectionsMakesRoomForOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ::chmod(folder_.path().c_str(), 0755);
  running_.reset();
  running_.emplace(pool_, socket_, Limits{.connections = 8, .connections_of_user = 20, .idle_of_user = 20});
  ::chmod(socket_.c_str(), 0666);
  const Crowd crowd(socket_, 61001, 12);
  const auto one = client(), two = client();
  ASSERT_TRUE(one && two);
  EXPECT_TRUE(one->read());
  EXPECT_TRUE(two->read());
}

TEST_F(ServerTest, WhoHasAsManyConnectionsAsOthersGetsNoneOfTheirs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ::chmod(folder_.path().c_str(), 0755);
  running_.reset();
  running_.emplace(pool_, socket_, Limits{.connections = 8, .connections_of_user = 20, .idle_of_user = 20});
  ::chmod(socket_.c_str(), 0666);
  std::vector<Fd> mine;
  for (int i = 0; i < 4; ++i) mine.push_back(raw());
  const Crowd crowd(socket_, 61001, 12);
  EXPECT_EQ(all_of(raw()), "") << "there is no room, and nobody has more than this user";
  const std::string request = wire::frame_of(wire::text_of(wire::Request{.id = "r", .ask = wire::Ask::read}));
  for (const Fd& one : mine) {
    char byte = 0;
    ASSERT_EQ(::send(one.get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    EXPECT_EQ(::recv(one.get(), &byte, 1, 0), 1);
  }
}

TEST_F(ServerTest, WhoActsForAnotherUserIsThatUser) {
  running_.reset();
  running_.emplace(pool_, socket_, Limits{}, [](int) { return Account{{"bob", {}}, 4711}; });
  const auto user = client();
  const auto submitted = user->apply(pool::Submit{.job = job_for("mine")});
  ASSERT_TRUE(submitted) << submitted.error().message;
  EXPECT_EQ((*user->find(submitted->job))->uid, 4711);
  EXPECT_EQ((*user->find(submitted->job))->user, "bob");
}

/// Of what waits for a reading of the machine, one request of each user is answered in a round, as of all others.
TEST(Server, WhatHasWaitedForTheMachineIsAnsweredInTurns) {
  const ScratchFolder folder;
  const std::string socket = folder.path("socket");
  auto view = pool::MachineView::open(
      folder.path("pool"), [] { return Result<Inventory>(busy_box()); }, [] { return Result<pool::Policy>(); }, false);
  auto service = Service::open(folder.path("pool"), *view, monotonic_s() - 100);
  ASSERT_TRUE(service);
  const Fd may_read(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
  auto slow = pool::MachineView::open(
      folder.path("pool"),
      [&, is_first = true]() mutable {
        uint64_t count = 0;
        if (!std::exchange(is_first, false)) (void)!::read(may_read.get(), &count, sizeof count);
        return Result<Inventory>(busy_box());
      },
      [] { return Result<pool::Policy>(); }, false);
  MachineThread machine(std::move(*slow));
  const auto let_read = [&](uint64_t times) { EXPECT_EQ(::write(may_read.get(), &times, sizeof times), 8); };
  const std::shared_ptr<void> at_end(nullptr, [&](void*) { let_read(100); });
  UserNames names([](int uid) { return Account{{"ada", {}}, uid}; });
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_of(socket);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 128), 0);
  Server server(std::move(listener), std::move(*service), machine, names, {.idle_of_user = 6});
  const auto connect = [&] {
    Fd one(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::connect(one.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return one;
  };
  std::vector<Fd> sockets, idle;
  for (int i = 0; i < 5; ++i) {
    sockets.push_back(connect());
    const std::string request =
        wire::frame_of(wire::text_of(wire::Request{.id = "r" + std::to_string(i),
                                                   .ask = wire::Ask::apply,
                                                   .operation = pool::Submit{.job = job_for("now"), .waits = false}}));
    ASSERT_GT(::send(sockets.back().get(), request.data(), request.size(), 0), 0);
  }
  const auto answered = [&] {
    return std::ranges::count_if(sockets, [](const Fd& one) {
      char byte = 0;
      return ::recv(one.get(), &byte, 1, MSG_PEEK) == 1;
    });
  };
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(server.round(0.01));
  ASSERT_EQ(answered(), 0);
  for (int i = 0; i < 4; ++i) idle.push_back(connect());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(server.round(0.01));
  let_read(1);
  int64_t before = 0;
  for (int i = 0; i < 1000 && before < 5; ++i) {
    ASSERT_TRUE(server.round(0.01));
    const int64_t now = answered();
    EXPECT_LE(now - before, 1);
    before = now;
  }
  EXPECT_EQ(before, 5) << "too many idle ones close none that waits for its answer";
}

}  // namespace
}  // namespace remuda::agent
