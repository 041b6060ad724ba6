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

TEST(Hosts, OneRankOfEachSendsWhatTwoRanksWouldAndTheOthersNothing) {
  constexpr size_t kCount = 1 << 20;
  std::array<std::atomic<uint64_t>, 4> sent{};
  run_ranks(
      4, Transport::automatic,
      [&](Communicator& communicator) {
        EXPECT_EQ(communicator.transport(), "shared memory, tcp between hosts");
        const auto values = allocate<float>(communicator, kCount);
        const uint64_t before = communicator.sent_bytes();
        expect_ok(communicator.all_reduce(values, 0));
        sent[static_cast<size_t>(communicator.rank())] = communicator.sent_bytes() - before;
      },
      30, [](ConnectOptions& options) { options.host = options.rank < 2 ? "first" : "second"; });
  EXPECT_EQ(sent[0], kCount * sizeof(float) + sizeof(Call));
  EXPECT_EQ(sent[2], sent[0]);
  EXPECT_EQ(sent[1] + sent[3], 0u);
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
