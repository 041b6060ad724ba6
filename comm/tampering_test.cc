// Someone between two ranks, who can read, change, hold back and repeat what they send each other.
#include <algorithm>
#include <fmt/format.h>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

#include "comm/communicator.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr double kTamperedWait_s = 60;  // by then a test has failed
const std::string kSecret(32, 'a');

/// What is done to a connection: to its bytes, with the number of the first one in its direction; false cuts it.
struct Tampering {
  std::function<bool(std::span<std::byte> bytes, size_t first)> up, down;  // to rank 0, from rank 0
};

/// Listens in rank 0's place and passes on what comes: first the control connection, then the one for data.
class Middle {
 public:
  Middle(int rank0_port, Tampering control, Tampering data)
      : listener_(*listen_on({"127.0.0.1", 0})), ways_{std::move(control), std::move(data)} {
    thread_ = std::jthread([this, rank0_port] { run(rank0_port); });
  }
  int port() const { return local_endpoint(listener_.get()).port; }

 private:
  struct Direction {
    const Fd *from, *to;
    std::function<bool(std::span<std::byte>, size_t)>& change;
    size_t passed = 0;
    bool open = true;
  };

  void run(int rank0_port) {
    for (Fd* ends : {control_, data_}) {
      if (!wait_ready(listener_.get(), POLLIN, deadline_after(kTamperedWait_s))) return;
      ends[0] = accept_waiting(listener_.get());
      auto onward = dial({"127.0.0.1", rank0_port}, deadline_after(kTamperedWait_s));
      if (!onward) return;
      ends[1] = std::move(*onward);
      Tampering& tampering = ways_[ends == data_ ? 1 : 0];
      directions_.push_back({&ends[0], &ends[1], tampering.up});
      directions_.push_back({&ends[1], &ends[0], tampering.down});
      while (ends == control_ && !wait_ready(listener_.get(), POLLIN, 0) && any_open()) pass_on();
      if (!any_open()) return;
    }
    while (any_open()) pass_on();
  }
  bool any_open() const { return std::ranges::any_of(directions_, &Direction::open); }
  void pass_on() {
    std::vector<pollfd> polled;
    for (const Direction& each : directions_) polled.push_back({each.open ? each.from->get() : -1, POLLIN, 0});
    ::poll(polled.data(), polled.size(), 10);
    for (Direction& each : directions_)
      if (each.open) each.open = pass_on(each);
  }
  static bool pass_on(Direction& direction) {
    std::vector<std::byte> bytes(64 << 10);
    const ptrdiff_t got = recv_some(direction.from->get(), bytes);
    if (got == 0) return true;
    bytes.resize(static_cast<size_t>(std::max<ptrdiff_t>(0, got)));
    const bool goes_on = got > 0 && (!direction.change || direction.change(bytes, direction.passed));
    direction.passed += bytes.size();
    if (!goes_on || !send_all(direction.to->get(), bytes, deadline_after(kTamperedWait_s), "a rank")) {
      ::shutdown(direction.to->get(), SHUT_WR);
      ::shutdown(direction.from->get(), SHUT_RD);
      return false;
    }
    return true;
  }

  Fd listener_;
  Tampering ways_[2];
  Fd control_[2], data_[2];
  std::vector<Direction> directions_;
  std::jthread thread_;
};

std::function<bool(std::span<std::byte>, size_t)> flip_at(size_t place) {
  return [place](std::span<std::byte> bytes, size_t first) {
    if (place >= first && place < first + bytes.size()) bytes[place - first] ^= std::byte{1};
    return true;
  };
}
std::function<bool(std::span<std::byte>, size_t)> cut_at(size_t place) {
  return [place](std::span<std::byte> bytes, size_t first) { return first + bytes.size() <= place; };
}

/// Two ranks that reduce some MiB with someone between them; the error of each, empty without one.
std::array<std::string, 2> reduce_through(Tampering control, Tampering data, Encryption encryption = Encryption::always,
                                          double connect_timeout_s = kTamperedWait_s) {
  Fd listener = *listen_on({"127.0.0.1", 0});
  const Middle middle(local_endpoint(listener.get()).port, std::move(control), std::move(data));
  const auto run = [&](int rank) -> Result<void> {
    REMUDA_ASSIGN(const auto communicator, connect({.rank = rank,
                                                    .size = 2,
                                                    .master_port = middle.port(),
                                                    .listener = rank == 0 ? std::move(listener) : Fd(),
                                                    .secret = kSecret,
                                                    .encryption = encryption,
                                                    .transport = ConnectOptions::Transport::tcp,
                                                    .timeout_s = kTamperedWait_s,
                                                    .connect_timeout_s = connect_timeout_s}));
    REMUDA_ASSIGN(const auto memory, communicator->allocate(4 << 20));
    const std::span values(reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float));
    std::ranges::fill(values, 1.0f);
    REMUDA_TRY(communicator->all_reduce(values, 1));
    REMUDA_TRY(
        communicator->barrier(2));  // a rank that has sent and received all of a call learns of trouble in the next
    return values[values.size() / 2] == 2 ? Result<void>() : failed("the sum is wrong");
  };
  auto other = std::async(std::launch::async, run, 1);
  const auto text = [](const Result<void>& result) { return result ? "" : result.error().message; };
  std::string first = text(run(0));
  return {first, text(other.get())};
}

auto names_both() {
  return AllOf(AnyOf(HasSubstr("rank 0"), HasSubstr("this rank, 0,")),
               AnyOf(HasSubstr("rank 1"), HasSubstr("this rank, 1,")));
}

TEST(Tampering, AWayThatChangesNothingIsNoticedByNobody) {
  for (const auto encryption : {Encryption::off, Encryption::always})
    for (const std::string& error : reduce_through({}, {}, encryption)) EXPECT_EQ(error, "");
}

TEST(Tampering, AChangedBitInTheDataEndsBothRanks) {
  for (const size_t place : {1000u, 100000u, 3000000u})
    for (const bool up : {true, false}) {
      const Tampering tampering = up ? Tampering{flip_at(place), {}} : Tampering{{}, flip_at(place)};
      for (const std::string& error : reduce_through({}, tampering))
        EXPECT_THAT(error, names_both()) << "byte " << place;
    }
}

TEST(Tampering, TheRankThatReceivesAChangedBitSaysSo) {
  const auto errors = reduce_through({}, {flip_at(100000), {}});
  EXPECT_THAT(errors[0],
              HasSubstr("rank 1 and rank 0 can no longer read what they send each other, as it was changed on "
                        "the way"));
}

TEST(Tampering, ACutConnectionEndsBothRanks) {
  for (const size_t place : {1000u, 100000u, 3000000u})
    for (const std::string& error : reduce_through({}, {cut_at(place), {}}))
      EXPECT_THAT(error, AllOf(names_both(), Not(HasSubstr("in time")))) << "byte " << place;
}

TEST(Tampering, AChangedBitInTheControlConnectionEndsBothRanks) {
  for (const size_t place : {260u, 300u, 400u})  // behind the handshake: TLS's hello, first its length
    for (const std::string& error : reduce_through({flip_at(place), {}}, {}, Encryption::always, 0.5))
      EXPECT_NE(error, "") << "byte " << place;
}

/// Rank 1 is played back to a new rank 0, from what someone in the middle has written down.
TEST(Tampering, ARecordedRankIsRefused) {
  std::vector<std::byte> recorded;
  const Tampering listening{[&](std::span<std::byte> bytes, size_t) {
                              recorded.insert(recorded.end(), bytes.begin(), bytes.end());
                              return true;
                            },
                            {}};
  for (const std::string& error : reduce_through(listening, {})) ASSERT_EQ(error, "");
  Fd listener = *listen_on({"127.0.0.1", 0});
  const Endpoint address = local_endpoint(listener.get());
  auto rank0 = std::async(std::launch::async, [&] {
    return connect({.rank = 0,
                    .size = 2,
                    .listener = std::move(listener),
                    .secret = kSecret,
                    .encryption = Encryption::always,
                    .connect_timeout_s = 2});
  });
  const Fd replayed = *dial(address, deadline_after(kTamperedWait_s));
  EXPECT_TRUE(send_all(replayed.get(), recorded, deadline_after(kTamperedWait_s), "rank 0"));
  const auto result = rank0.get();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("rank 0: rank 1 of 2 did not come within 2 s"));
  EXPECT_THAT(result.error().message, HasSubstr("does not know the job's secret"));
}

TEST(Tampering, RanksThatDifferInEncryptionAreBothTold) {
  Fd listener = *listen_on({"127.0.0.1", 0});
  const int port = local_endpoint(listener.get()).port;
  const auto run = [&](int rank) {
    return connect({.rank = rank,
                    .size = 2,
                    .master_port = port,
                    .listener = rank == 0 ? std::move(listener) : Fd(),
                    .secret = kSecret,
                    .encryption = rank == 0 ? Encryption::off : Encryption::always,
                    .connect_timeout_s = kTamperedWait_s});
  };
  auto other = std::async(std::launch::async, run, 1);
  const auto first = run(0), second = other.get();
  ASSERT_FALSE(first);
  ASSERT_FALSE(second);
  for (const auto* result : {&first, &second}) {
    EXPECT_EQ(result->error().kind, ErrorKind::usage);
    EXPECT_THAT(result->error().message, HasSubstr("encryption is"));
    EXPECT_THAT(result->error().message, AllOf(HasSubstr("always for rank 1"), HasSubstr("off for rank 0")));
  }
}

}  // namespace
}  // namespace remuda::comm
