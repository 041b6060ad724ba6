// Sums of which some ranks' values are known to be zero.
#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "comm/call.h"
#include "comm/testing/transport_suite.h"

namespace remuda::comm {
namespace {

class SilentRanks : public TransportSuite {};
class SilentRanksOverTcp : public TransportSuite {};

std::vector<Setup> over_tcp() {
  std::vector<Setup> all = setups({2, 4});
  std::erase_if(all, [](const Setup& setup) { return setup.known.transport != Transport::tcp; });
  return all;
}

/// Any of the ranks: the others' sum is what a rank gets, and what silent ones hold is neither sent nor read.
TEST_P(SilentRanks, AreAddedUpToNothing) {
  constexpr size_t kCount = 4097;
  run([&](Communicator& communicator) {
    for (unsigned number = 0; number < 1U << ranks(); ++number) {
      std::vector<bool> silent;
      for (int rank = 0; rank < ranks(); ++rank) silent.push_back(number >> rank & 1);
      const auto values = allocate<int64_t>(communicator, kCount);
      int64_t expected = 0;
      for (int rank = 0; rank < ranks(); ++rank) expected += silent[size_t(rank)] ? 0 : rank + 1;
      std::ranges::fill(values, silent[size_t(communicator.rank())] ? 1000000 : communicator.rank() + 1);
      const Parts parts = even_parts(ranks(), kCount, sizeof(int64_t));
      std::vector<int64_t> sum(parts.of(communicator.rank()).size(), -1);
      expect_ok(communicator.reduce_scatter(values, parts, std::span(sum), number, silent));
      EXPECT_EQ(sum, std::vector<int64_t>(sum.size(), expected)) << number << " on rank " << communicator.rank();
    }
  });
}

TEST_P(SilentRanksOverTcp, SendNothing) {
  run([&](Communicator& communicator) {
    constexpr size_t kCount = 64 * 1024;
    const bool is_silent = communicator.rank() == ranks() - 1;
    std::vector<bool> silent(size_t(ranks()), false);
    silent.back() = true;
    const Parts parts = even_parts(ranks(), kCount, sizeof(float));
    std::vector<float> sum(parts.of(communicator.rank()).size());
    const auto values = allocate<float>(communicator, kCount);
    const uint64_t before = communicator.sent_bytes();
    expect_ok(communicator.reduce_scatter(values, parts, std::span(sum), 0, silent));
    const uint64_t descriptions = sizeof(Call) * static_cast<size_t>((ranks() - 1) * streams());
    EXPECT_EQ(communicator.sent_bytes() - before - descriptions, is_silent ? 0 : sizeof(float) * (kCount - sum.size()));
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, SilentRanks, ::testing::ValuesIn(setups({1, 2, 3, 4})), setup_name);
INSTANTIATE_TEST_SUITE_P(Transports, SilentRanksOverTcp, ::testing::ValuesIn(over_tcp()), setup_name);

}  // namespace
}  // namespace remuda::comm
