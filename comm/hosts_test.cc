// Ranks of several hosts, as their names say: which are together, and what goes between the hosts.
#include "comm/hosts.h"

#include <array>
#include <atomic>
#include <future>
#include <gtest/gtest.h>

#include "comm/call.h"
#include "comm/testing/transport_suite.h"

namespace remuda::comm {
namespace {

TEST(Hosts, AreTheRanksOfOneNameInTheOrderOfTheirLowestRank) {
  EXPECT_EQ(hosts_of({"b", "a", "b", "a", "c"}), (Hosts{{0, 2}, {1, 3}, {4}}));
  EXPECT_EQ(hosts_of({"", "", "a"}), (Hosts{{0}, {1}, {2}})) << "without a name, a rank is alone";
  EXPECT_EQ(hosts_of({"a"}), (Hosts{{0}}));
}

TEST(Hosts, ThisOneHasAName) { EXPECT_FALSE(this_host().empty()); }

/// What each of four ranks sends in a call with 4 MiB, over four streams between two hosts.
std::array<uint64_t, 4> sent_in(const std::function<Result<void>(Communicator&, std::span<float>)>& call) {
  std::array<uint64_t, 4> sent{};
  run_ranks(
      4, Transport::automatic,
      [&](Communicator& communicator) {
        EXPECT_EQ(communicator.transport(), "shared memory, tcp between hosts");
        const auto values = allocate<float>(communicator, 1 << 20);
        const uint64_t before = communicator.sent_bytes();
        expect_ok(call(communicator, values));
        sent[static_cast<size_t>(communicator.rank())] = communicator.sent_bytes() - before;
      },
      30,
      [](ConnectOptions& options) {
        options.host = options.rank < 2 ? "first" : "second";
        options.streams = 4;
      });
  return sent;
}

TEST(Hosts, OneRankOfEachSendsWhatTwoRanksWouldAndTheOthersNothing) {
  constexpr uint64_t kDescriptions = 4 * sizeof(Call), kBytes = 4 << 20;
  const auto reduced =
      sent_in([](Communicator& communicator, auto values) { return communicator.all_reduce(values, 0); });
  EXPECT_EQ(reduced, (std::array{kBytes + kDescriptions, uint64_t{0}, kBytes + kDescriptions, uint64_t{0}}));
  const auto passed_on = sent_in([](Communicator& communicator, auto values) {
    return communicator.broadcast(std::as_writable_bytes(values), 0, 0);
  });
  EXPECT_EQ(passed_on, (std::array{kBytes + kDescriptions, uint64_t{0}, kDescriptions, uint64_t{0}}));
}

/// Its leader gives up first, and not the leader of the other host, which waits for it.
TEST(Hosts, ASilentRankIsNamedOnTheOtherHostToo) {
  constexpr int kSilent = 1;
  std::promise<void> over;
  std::shared_future<void> all_gave_up = over.get_future().share();
  std::atomic<int> gave_up = 0;
  run_ranks(
      4, Transport::automatic,
      [&](Communicator& communicator) {
        expect_ok(communicator.barrier(0));
        if (communicator.rank() == kSilent) return all_gave_up.wait();
        const auto result = communicator.barrier(1);
        if (++gave_up == 3) over.set_value();
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().peer, kSilent) << "rank " << communicator.rank() << ": " << result.error().message;
      },
      0.2, [](ConnectOptions& options) { options.host = options.rank < 2 ? "first" : "second"; });
}

TEST(Hosts, WithOneRankEachAreJoinedByTcp) {
  run_ranks(
      2, Transport::automatic, [](Communicator& communicator) { EXPECT_EQ(communicator.transport(), "tcp"); }, 30,
      [](ConnectOptions& options) { options.host = options.rank == 0 ? "first" : "second"; });
}

TEST(Hosts, EncryptWhatGoesBetweenThem) {
  run_ranks(
      3, Transport::automatic,
      [](Communicator& communicator) {
        EXPECT_EQ(communicator.transport(), "shared memory, encrypted tcp between hosts");
        expect_ok(communicator.barrier(0));
      },
      30,
      [](ConnectOptions& options) {
        options.host = options.rank < 2 ? "first" : "second";
        options.encryption = Encryption::always;
      });
}

}  // namespace
}  // namespace remuda::comm
