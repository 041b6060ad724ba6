// The requirements on every transport: one suite, run for each transport in kTransports and 1 to 4 ranks; the tests
// that may depend on the number of ranks also with 8 and 16. What happens when ranks disagree: mismatch_test.cc.

#include "comm/communicator.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <future>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <vector>

#include "comm/call.h"
#include "comm/testing/transport_suite.h"

namespace remuda::comm {
namespace {

template <typename T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

class CommunicatorSuite : public TransportSuite {
 protected:
  template <typename T>
  void sums_in_rank_order(const std::vector<size_t>& counts = {0, 1, 7, 16, 33, 4097, 100003}) {
    run([&](Communicator& communicator) {
      for (const size_t count : counts) {
        const std::span<T> values = allocate<T>(communicator, count);
        std::ranges::copy(values_of<T>(communicator.rank(), count), values.begin());
        expect_ok(communicator.all_reduce(values, static_cast<uint32_t>(count)));
        const std::vector<T> expected = sum_by_rank_order<T>(ranks(), count, GetParam().known.hosts);
        EXPECT_TRUE(same_bits<T>(values, expected)) << count << " elements on rank " << communicator.rank();
      }
    });
  }
  /// The halves of an all_reduce in turn, over parts of every size, give what it gives; a rank's own part is right
  /// after the first half.
  template <typename T>
  void halves_give_the_sum(const std::vector<size_t>& counts) {
    run([&](Communicator& communicator) {
      std::mt19937 random(11);  // the same on all ranks
      for (const size_t count : counts) {
        std::vector<double> weights(ranks());
        for (double& weight : weights) weight = random() % 3;
        weights[random() % weights.size()] += 1;
        const Parts parts = parts_by(weights, count, sizeof(T)), bytes = parts.in_bytes(sizeof(T));
        const std::span<T> values = allocate<T>(communicator, count);
        std::ranges::copy(values_of<T>(communicator.rank(), count), values.begin());
        expect_ok(communicator.reduce_scatter(values, parts, 1));
        const std::vector<T> expected = sum_by_rank_order<T>(ranks(), count, GetParam().known.hosts);
        const Chunk own = parts.of(communicator.rank());
        EXPECT_TRUE(
            same_bits<T>(values.subspan(own.begin, own.size()), std::span(expected).subspan(own.begin, own.size())));
        for (size_t i = 0; i < count; ++i)
          if (i < own.begin || i >= own.end) values[i] = -1;  // nobody needs it any more
        expect_ok(communicator.gather_parts(std::as_writable_bytes(values), bytes, 2));
        EXPECT_TRUE(same_bits<T>(values, expected)) << count << " elements on rank " << communicator.rank();
      }
    });
  }
  /// `narrow` makes values of 16 bits of those of values_of<float>, `widen` says what they are.
  template <typename T>
  void sums_halves_in_float32(T (*narrow)(float), float (*widen)(T)) {
    run([&](Communicator& communicator) {
      for (const size_t count : {0, 1, 33, 4097, 100003}) {
        const auto halves_of = [&](int rank) {
          std::vector<T> halves(count);
          std::ranges::transform(values_of<float>(rank, count), halves.begin(), narrow);
          return halves;
        };
        const auto wide_of = [&](int rank) {
          std::vector<float> wide(count);
          std::ranges::transform(halves_of(rank), wide.begin(), widen);
          return wide;
        };
        const std::span<T> values = allocate<T>(communicator, count);
        std::ranges::copy(halves_of(communicator.rank()), values.begin());
        std::vector<double> weights(static_cast<size_t>(ranks()), 1.0);
        weights.front() = 3;
        const Parts parts = parts_by(weights, count, sizeof(T));
        const Chunk own = parts.of(communicator.rank());
        std::vector<float> sum(own.size());
        expect_ok(communicator.reduce_scatter(values, parts, std::span(sum), 1));
        const std::vector<float> expected = sum_in_order(ranks(), GetParam().known.hosts, wide_of);
        EXPECT_TRUE(same_bits<float>(sum, std::span(expected).subspan(own.begin, own.size())))
            << count << " elements on rank " << communicator.rank();
      }
    });
  }
  void broadcasts_from_each_root(const std::vector<size_t>& counts) {
    run([&](Communicator& communicator) {
      for (const size_t count : counts) {
        for (int root = 0; root < ranks(); ++root) {
          std::vector<float> values = values_of<float>(communicator.rank(), count);
          expect_ok(communicator.broadcast(std::as_writable_bytes(std::span(values)), root, 5));
          EXPECT_TRUE(same_bits<float>(values, values_of<float>(root, count)));
        }
      }
    });
  }
  void gathers_in_rank_order(const std::vector<size_t>& counts) {
    run([&](Communicator& communicator) {
      for (const size_t count : counts) {
        const std::vector<float> mine = values_of<float>(communicator.rank(), count);
        std::vector<float> all(count * ranks()), expected;
        for (int rank = 0; rank < ranks(); ++rank)
          std::ranges::copy(values_of<float>(rank, count), std::back_inserter(expected));
        expect_ok(communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), 0));
        EXPECT_TRUE(same_bits<float>(all, expected));
      }
    });
  }
  /// Parts of every size, empty ones too: what rank a has for rank b arrives there as it was.
  void sends_each_its_part(const std::vector<size_t>& counts) {
    run([&](Communicator& communicator) {
      for (const size_t count : counts) {
        std::vector<size_t> ends;
        for (int rank = 0; rank < ranks(); ++rank)
          ends.push_back((ends.empty() ? 0 : ends.back()) + count * (rank % 3));
        const Parts parts = Parts(ends).in_bytes(sizeof(float));
        const auto mine = values_of<float>(communicator.rank(), ends.back());
        std::vector<float> theirs(count * size_t(communicator.rank() % 3) * size_t(ranks())), expected;
        expect_ok(communicator.all_to_all(std::as_bytes(std::span(mine)), parts,
                                          std::as_writable_bytes(std::span(theirs)), 4));
        const Chunk own = Parts(ends).of(communicator.rank());
        for (int peer = 0; peer < ranks(); ++peer) {
          const auto from = values_of<float>(peer, ends.back());
          std::ranges::copy(std::span(from).subspan(own.begin, own.size()), std::back_inserter(expected));
        }
        EXPECT_TRUE(same_bits<float>(theirs, expected)) << count << " elements on rank " << communicator.rank();
      }
    });
  }
  void waits_for_all(int rounds) {
    std::atomic<int> came = 0;
    run([&](Communicator& communicator) {
      for (int round = 1; round <= rounds; ++round) {
        ++came;
        expect_ok(communicator.barrier(0));
        EXPECT_GE(came, round * ranks());
        expect_ok(communicator.barrier(1));
        EXPECT_LE(came, (round + 1) * ranks());
      }
    });
  }
};

std::unique_ptr<Communicator> split(Communicator& communicator, const std::vector<int>& some) {
  auto group = communicator.split(some, 9);
  if (!group) throw std::runtime_error(group.error().message);
  return std::move(*group);
}

/// All `ranks` in reverse order: on several hosts, the numbers of a host's ranks are still those modulo the hosts.
std::vector<int> reversed(int ranks) {
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.rbegin(), all.rend(), 0);
  return all;
}

// More ranks than cores, and more than some chunks have cache lines.
class ManyRanksSuite : public CommunicatorSuite {};

// Transports by which each rank speaks for itself.
class TcpSuite : public CommunicatorSuite {};

std::vector<Setup> tcp_setups() {
  std::vector<Setup> all = setups({2, 4});
  std::erase_if(all, [](const Setup& setup) { return setup.known.transport != Transport::tcp; });
  return all;
}

TEST_P(CommunicatorSuite, KnowsItself) {
  run([&](Communicator& communicator) {
    EXPECT_EQ(communicator.size(), ranks());
    if (ranks() > GetParam().known.hosts) {
      EXPECT_EQ(communicator.transport(), GetParam().known.name);
    }
  });
}

TEST_P(CommunicatorSuite, KnowsWhoIsReachedThroughMemory) {
  run([&](Communicator& communicator) {
    const bool in_memory = communicator.transport().starts_with("shared memory");
    const int hosts = in_memory ? std::min(ranks(), GetParam().known.hosts) : ranks();
    std::vector<std::vector<int>> expected(static_cast<size_t>(hosts));
    for (int rank = 0; rank < ranks(); ++rank) expected[static_cast<size_t>(rank % hosts)].push_back(rank);
    EXPECT_EQ(communicator.hosts(), expected);
  });
}

TEST_P(CommunicatorSuite, AllReduceOfFloatAddsInRankOrder) { sums_in_rank_order<float>(); }
TEST_P(CommunicatorSuite, AllReduceOfDoubleAddsInRankOrder) { sums_in_rank_order<double>(); }

TEST_P(CommunicatorSuite, TheHalvesOfAnAllReduceGiveItsSum) {
  halves_give_the_sum<float>({0, 1, 7, 16, 33, 4097, 100003});
  halves_give_the_sum<double>({0, 1, 9, 4097});
}

TEST_P(CommunicatorSuite, AllReduceOfIntegersIsExact) {
  run([&](Communicator& communicator) {
    const auto values = allocate<int64_t>(communicator, 1000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = (int64_t{1} << 60) + static_cast<int64_t>(i);
    expect_ok(communicator.all_reduce(values, 0));
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], ranks() * ((int64_t{1} << 60) + static_cast<int64_t>(i)));
  });
}

TEST_P(CommunicatorSuite, HalvesAreAddedUpInFloat32) {
  sums_halves_in_float32<BFloat16>(
      [](float value) { return BFloat16{static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16)}; },
      [](BFloat16 half) { return std::bit_cast<float>(uint32_t{half.bits} << 16); });
  sums_halves_in_float32<Float16>([](float value) { return std::bit_cast<Float16>(static_cast<_Float16>(value)); },
                                  [](Float16 half) { return static_cast<float>(std::bit_cast<_Float16>(half)); });
}

TEST_P(TcpSuite, HalvesAreHalfOfTheBytesOnTheWire) {
  run([&](Communicator& communicator) {
    constexpr size_t kCount = 64 * 1024;
    const auto descriptions = static_cast<size_t>((ranks() - 1) * streams());
    const Parts parts = even_parts(ranks(), kCount, sizeof(BFloat16));
    const auto sent_by = [&](Values values, Values sum) {
      const uint64_t before = communicator.sent_bytes();
      expect_ok(communicator.reduce_scatter(values, parts, sum, 0));
      return communicator.sent_bytes() - before - sizeof(Call) * descriptions;
    };
    std::vector<float> sum(parts.of(communicator.rank()).size());
    const uint64_t floats = sent_by(allocate<float>(communicator, kCount), std::span(sum));
    EXPECT_EQ(sent_by(allocate<BFloat16>(communicator, kCount), std::span(sum)), floats / 2);
    EXPECT_EQ(floats, sizeof(float) * (kCount - sum.size()));
  });
}

TEST_P(TcpSuite, ASplitHasAsManyStreams) {
  run([&](Communicator& communicator) {
    const auto peers = static_cast<size_t>(ranks() - 1);
    const auto group = split(communicator, reversed(ranks()));
    std::vector<std::byte> bytes(4096);
    expect_ok(group->broadcast(bytes, 0, 0));
    const size_t values = group->rank() == 0 ? peers * bytes.size() : 0;
    EXPECT_EQ(group->sent_bytes(), values + peers * static_cast<size_t>(streams()) * sizeof(Call));
  });
}

TEST_P(CommunicatorSuite, AllReducesPartsOfOneAllocation) {
  run([&](Communicator& communicator) {
    const auto values = allocate<float>(communicator, 1000);
    for (int round = 1; round <= 50; ++round) {
      std::ranges::fill(values, static_cast<float>(round));
      expect_ok(communicator.all_reduce(values.subspan(3, 501), 0));
      expect_ok(communicator.all_reduce(values.subspan(504, 100), 1));
      EXPECT_EQ(values[2], round);
      EXPECT_EQ(values[3], round * ranks());
      EXPECT_EQ(values[603], round * ranks());
      EXPECT_EQ(values[604], round);
    }
  });
}

TEST_P(CommunicatorSuite, MessagesLargerThanAllSocketBuffersPass) {
  run([&](Communicator& communicator) {
    const auto values = allocate<float>(communicator, 4 << 20);
    std::ranges::fill(values, 1.0f);
    expect_ok(communicator.all_reduce(values, 0));
    const auto good = [&](float value) { return value == static_cast<float>(ranks()); };
    EXPECT_EQ(std::ranges::count_if(values, good), 4 << 20);
  });
}

TEST_P(CommunicatorSuite, AllocatesZeroedAlignedMemory) {
  run([&](Communicator& communicator) {
    for (const size_t bytes : {0, 1, 5000, 1 << 20}) {
      const auto memory = communicator.allocate(bytes);
      ASSERT_TRUE(memory) << memory.error().message;
      EXPECT_EQ(memory->size(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 64, 0u);
      EXPECT_TRUE(std::ranges::all_of(*memory, [](std::byte b) { return b == std::byte{0}; }));
      std::ranges::fill(*memory, std::byte{1});
    }
  });
}

TEST_P(CommunicatorSuite, BroadcastsFromEachRoot) { broadcasts_from_each_root({0, 1, 1001, 200003}); }
TEST_P(CommunicatorSuite, GathersInRankOrder) { gathers_in_rank_order({0, 1, 1001, 100003}); }
TEST_P(CommunicatorSuite, SendsEachRankItsPart) { sends_each_its_part({0, 1, 1001, 50003}); }
TEST_P(CommunicatorSuite, BarrierLetsNobodyThroughBeforeAllCame) { waits_for_all(100); }

TEST_P(CommunicatorSuite, ASplitNumbersItsRanksInTheOrderOfTheList) {
  run([&](Communicator& communicator) {
    const auto group = split(communicator, reversed(ranks()));
    EXPECT_EQ(group->size(), ranks());
    EXPECT_EQ(group->rank(), ranks() - 1 - communicator.rank());
    EXPECT_EQ(group->transport(), communicator.transport());
    const auto values = allocate<float>(*group, 1001);
    std::ranges::copy(values_of<float>(group->rank(), values.size()), values.begin());
    expect_ok(group->all_reduce(values, 0));
    EXPECT_TRUE(same_bits<float>(values, sum_by_rank_order<float>(ranks(), 1001, GetParam().known.hosts)));
    int word = communicator.rank();
    expect_ok(group->broadcast(std::as_writable_bytes(std::span(&word, 1)), 0, 0));
    EXPECT_EQ(word, ranks() - 1) << "the first of the list";
    std::vector<int> all(static_cast<size_t>(ranks()));
    const int mine = communicator.rank();
    expect_ok(group->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), 0));
    EXPECT_EQ(all, reversed(ranks()));
  });
}

TEST_P(CommunicatorSuite, ASplitOfSomeLeavesTheOthersOut) {
  run([&](Communicator& communicator) {
    const std::vector<int> some = ranks() < 3 ? std::vector{ranks() - 1} : std::vector{2, 0};
    const auto group = split(communicator, some);
    const auto found = std::ranges::find(some, communicator.rank());
    ASSERT_EQ(group != nullptr, found != some.end());
    expect_ok(communicator.barrier(0));
    if (!group) return;
    EXPECT_EQ(group->rank(), found - some.begin());
    const auto values = allocate<double>(*group, 100);
    std::ranges::fill(values, group->rank() + 1.0);
    const Parts parts = even_parts(group->size(), values.size(), sizeof(double));
    expect_ok(group->reduce_scatter(values, parts, 0));
    expect_ok(group->gather_parts(std::as_writable_bytes(values), parts.in_bytes(sizeof(double)), 1));
    EXPECT_EQ(std::ranges::count(values, some.size() == 1 ? 1 : 3), 100);
    const auto alone = split(*group, std::vector{0});
    EXPECT_EQ(alone != nullptr, group->rank() == 0) << "a split of a split";
    if (alone) expect_ok(alone->barrier(0));
  });
}

TEST_P(CommunicatorSuite, ASplitWorksInAnotherThreadAtTheSameTime) {
  run([&](Communicator& communicator) {
    const auto group = split(communicator, reversed(ranks()));
    const auto add_ones = [&](Communicator& channel) {
      const auto values = allocate<float>(channel, 20000);
      for (int round = 0; round < 30; ++round) {
        std::ranges::fill(values, 1.0f);
        expect_ok(channel.all_reduce(values, 0));
        EXPECT_EQ(std::ranges::count(values, static_cast<float>(ranks())), 20000);
      }
    };
    auto other = std::async(std::launch::async, [&] { add_ones(*group); });
    add_ones(communicator);
    other.get();
  });
}

TEST_P(CommunicatorSuite, SurvivesALongMixOfCalls) {
  run([&](Communicator& communicator) {
    std::mt19937 random(7);
    const auto values = allocate<float>(communicator, 3000);
    for (int round = 0; round < 200; ++round) {
      const size_t count = random() % values.size();
      const int root = static_cast<int>(random() % ranks());
      std::ranges::fill(values, 1.0f);
      expect_ok(communicator.all_reduce(values.first(count), 0));
      EXPECT_TRUE(std::ranges::all_of(values.first(count), [&](float v) { return v == static_cast<float>(ranks()); }));
      int word = communicator.rank();
      expect_ok(communicator.broadcast(std::as_writable_bytes(std::span(&word, 1)), root, 0));
      EXPECT_EQ(word, root);
    }
  });
}

TEST_P(ManyRanksSuite, AllReduceAddsInRankOrder) {
  sums_in_rank_order<float>({1, 15, 16 * 7, 4097});
  sums_in_rank_order<double>({1, 8 * 9, 4097});
}
TEST_P(ManyRanksSuite, BroadcastsFromEachRoot) { broadcasts_from_each_root({1, 40001}); }
TEST_P(ManyRanksSuite, GathersInRankOrder) { gathers_in_rank_order({1, 40001}); }
TEST_P(ManyRanksSuite, SendsEachRankItsPart) { sends_each_its_part({1, 10001}); }
TEST_P(ManyRanksSuite, BarrierLetsNobodyThroughBeforeAllCame) { waits_for_all(10); }

INSTANTIATE_TEST_SUITE_P(Transports, ManyRanksSuite, ::testing::ValuesIn(setups({8, 16})), setup_name);
INSTANTIATE_TEST_SUITE_P(Transports, TcpSuite, ::testing::ValuesIn(tcp_setups()), setup_name);
INSTANTIATE_TEST_SUITE_P(Transports, CommunicatorSuite, ::testing::ValuesIn(setups({1, 2, 3, 4})), setup_name);

TEST(Communicator, AutomaticTakesSharedMemoryOnOneHost) {
  run_ranks(2, Transport::automatic, [](Communicator& c) { EXPECT_EQ(c.transport(), "shared memory"); });
}

TEST(RunRanks, ThrowsWhatARankThrew) {
  const auto body = [](Communicator& communicator) {
    if (communicator.rank() == 1) throw std::runtime_error("rank 1 had enough");
    EXPECT_FALSE(communicator.barrier(0));
  };
  try {
    run_ranks(2, Transport::automatic, body);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "rank 1 had enough");
  }
}

}  // namespace
}  // namespace remuda::comm
