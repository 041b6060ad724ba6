// The requirements on every transport: one suite, run for each transport in kTransports and 1 to 4 ranks; the tests
// that may depend on the number of ranks also with 8 and 16.

#include "comm/communicator.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "comm/testing/run_ranks.h"

namespace remuda::comm {
namespace {

using Transport = ConnectOptions::Transport;
using testing::AnyOf;
using testing::HasSubstr;

/// A transport, with what it calls itself and its word in the names of these tests.
struct Known {
  Transport transport;
  const char *name, *word;
};
constexpr Known kTransports[] = {{Transport::tcp, "tcp", "tcp"}, {Transport::shared_memory, "shared memory", "shm"}};

const Known& known(Transport transport) { return *std::ranges::find(kTransports, transport, &Known::transport); }

struct Setup {
  Transport transport;
  int ranks;
};

std::string setup_name(const testing::TestParamInfo<Setup>& info) {
  return fmt::format("{}_{}", known(info.param.transport).word, info.param.ranks);
}

// The values of rank `rank`; adding these in another order gives other bits.
template <typename T>
std::vector<T> values_of(int rank, size_t count) {
  std::mt19937 random(static_cast<unsigned>(1000 * rank + count));
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(std::ldexp(random() - 2e9, static_cast<int>(random() % 20) - 40));
  return values;
}

template <typename T>
std::vector<T> sum_by_rank_order(int ranks, size_t count) {
  std::vector<T> sum = values_of<T>(0, count);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<T> more = values_of<T>(rank, count);
    for (size_t i = 0; i < count; ++i) sum[i] += more[i];
  }
  return sum;
}

template <typename T>
std::span<T> allocate(Communicator& communicator, size_t count) {
  auto bytes = communicator.allocate(count * sizeof(T));
  if (!bytes) throw std::runtime_error(bytes.error().message);
  return {reinterpret_cast<T*>(bytes->data()), count};
}

void expect_ok(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

template <typename T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

class CommunicatorSuite : public testing::TestWithParam<Setup> {
 protected:
  int ranks() const { return GetParam().ranks; }
  void run(const std::function<void(Communicator&)>& body, double timeout_s = 30) {
    run_ranks(ranks(), GetParam().transport, body, timeout_s);
  }
  template <typename T>
  void sums_in_rank_order(const std::vector<size_t>& counts = {0, 1, 7, 16, 33, 4097, 100003}) {
    run([&](Communicator& communicator) {
      for (const size_t count : counts) {
        const std::span<T> values = allocate<T>(communicator, count);
        std::ranges::copy(values_of<T>(communicator.rank(), count), values.begin());
        expect_ok(communicator.all_reduce(values, static_cast<uint32_t>(count)));
        const std::vector<T> expected = sum_by_rank_order<T>(ranks(), count);
        EXPECT_TRUE(same_bits<T>(values, expected)) << count << " elements on rank " << communicator.rank();
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
  void expect_leaver_named();
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

// For tests that need a second rank, to disagree with or to lose.
class CompanySuite : public CommunicatorSuite {};
// More ranks than cores, and more than some chunks have cache lines.
class ManyRanksSuite : public CommunicatorSuite {};
// For a rank that fails, one that detects it and one that is notified.
class ThreeRanksSuite : public CommunicatorSuite {};

TEST_P(CommunicatorSuite, KnowsItself) {
  run([&](Communicator& communicator) {
    EXPECT_EQ(communicator.size(), ranks());
    EXPECT_EQ(communicator.transport(), known(GetParam().transport).name);
  });
}

TEST_P(CommunicatorSuite, AllReduceOfFloatAddsInRankOrder) { sums_in_rank_order<float>(); }
TEST_P(CommunicatorSuite, AllReduceOfDoubleAddsInRankOrder) { sums_in_rank_order<double>(); }

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
TEST_P(CommunicatorSuite, BarrierLetsNobodyThroughBeforeAllCame) { waits_for_all(100); }

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

std::vector<Setup> setups(std::initializer_list<int> numbers_of_ranks) {
  std::vector<Setup> all;
  for (const Known& each : kTransports)
    for (const int ranks : numbers_of_ranks) all.push_back({each.transport, ranks});
  return all;
}

TEST_P(ManyRanksSuite, AllReduceAddsInRankOrder) {
  sums_in_rank_order<float>({1, 15, 16 * 7, 4097});
  sums_in_rank_order<double>({1, 8 * 9, 4097});
}
TEST_P(ManyRanksSuite, BroadcastsFromEachRoot) { broadcasts_from_each_root({1, 40001}); }
TEST_P(ManyRanksSuite, GathersInRankOrder) { gathers_in_rank_order({1, 40001}); }
TEST_P(ManyRanksSuite, BarrierLetsNobodyThroughBeforeAllCame) { waits_for_all(10); }

// Each rank's error, by rank; a rank without one fails the test.
using Errors = std::map<int, Error>;

class Collected {
 public:
  void add(const Communicator& communicator, const Result<void>& result) {
    const std::lock_guard lock(mutex_);
    ASSERT_FALSE(result) << "rank " << communicator.rank();
    errors_[communicator.rank()] = result.error();
  }
  const Errors& errors() const { return errors_; }

 private:
  std::mutex mutex_;
  Errors errors_;
};

TEST_P(CompanySuite, RanksThatDisagreeOnTheLabelAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto values = allocate<float>(communicator, 100000);
    const bool odd = communicator.rank() == 1;
    collected.add(communicator, communicator.all_reduce(values, odd ? 7 : 6));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks()));
  EXPECT_THAT(
      collected.errors().at(0).message,
      HasSubstr("rank 0 is at all_reduce #2 of float (label 6, 400000 bytes) while rank 1 is at all_reduce #2 of "
                "float (label 7, 400000 bytes)"));
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::failed);
    EXPECT_THAT(error.message, HasSubstr("rank 1 is at all_reduce #2 of float (label 7"));
  }
}

TEST_P(CompanySuite, RanksThatDisagreeOnTheSizeAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    std::vector<std::byte> bytes(communicator.rank() == 0 ? 300000 : 300001);
    collected.add(communicator, communicator.broadcast(bytes, 0, 0));
  });
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::failed);
    EXPECT_THAT(error.message, HasSubstr("rank 0 is at broadcast #1 (label 0, 300000 bytes from rank 0)"));
    EXPECT_THAT(error.message, HasSubstr(", 300001 bytes"));
  }
}

TEST_P(CompanySuite, RanksThatDisagreeOnTheCallAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto values = allocate<double>(communicator, 10);
    collected.add(communicator,
                  communicator.rank() == 0 ? communicator.barrier(3) : communicator.all_reduce(values, 3));
  });
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_THAT(error.message, HasSubstr("rank 0 is at barrier #2 (label 3, 0 bytes)"));
    EXPECT_THAT(error.message, HasSubstr("is at all_reduce #2 of double (label 3, 80 bytes)"));
  }
}

TEST_P(CompanySuite, RanksThatReduceDifferentPlacesAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto values = allocate<float>(communicator, 200);
    collected.add(communicator, communicator.all_reduce(values.subspan(communicator.rank() == 0 ? 0 : 100, 100), 0));
  });
  for (const auto& [rank, error] : collected.errors()) EXPECT_THAT(error.message, HasSubstr("at offset 400"));
}

TEST_P(CompanySuite, RanksThatReduceDifferentAllocationsAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto first = allocate<float>(communicator, 100), second = allocate<float>(communicator, 100);
    collected.add(communicator, communicator.all_reduce(communicator.rank() == 0 ? first : second, 0));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks()));
  for (const auto& [rank, error] : collected.errors()) EXPECT_THAT(error.message, HasSubstr("400 bytes at offset"));
}

void CommunicatorSuite::expect_leaver_named() {
  Collected collected;
  const int leaver = ranks() - 1;
  run([&](Communicator& communicator) {
    const auto values = allocate<float>(communicator, 500000);
    expect_ok(communicator.all_reduce(values, 0));
    if (communicator.rank() == leaver) return;
    collected.add(communicator, communicator.all_reduce(values, 1));
    collected.add(communicator, communicator.barrier(2));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(leaver));
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::lost_peer);
    EXPECT_EQ(error.peer, leaver) << error.message;
    EXPECT_THAT(error.message, HasSubstr(fmt::format("rank {} went away", leaver)));
  }
}

TEST_P(CompanySuite, ARankThatLeavesIsNamedByAllOthers) { expect_leaver_named(); }
TEST_P(ManyRanksSuite, ARankThatLeavesIsNamedByAllOthers) { expect_leaver_named(); }

TEST_P(CompanySuite, ASilentRankIsNamedWhenTimeIsUp) {
  Collected collected;
  std::promise<void> over;
  std::shared_future<void> all_gave_up = over.get_future().share();
  std::atomic<int> gave_up = 0;
  run(
      [&](Communicator& communicator) {
        expect_ok(communicator.barrier(0));
        if (communicator.rank() == 0) return all_gave_up.wait();
        collected.add(communicator, communicator.barrier(1));
        if (++gave_up == ranks() - 1) over.set_value();
      },
      0.2);
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks() - 1));
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::lost_peer);
    EXPECT_EQ(error.peer, 0);
    EXPECT_THAT(error.message, AnyOf(HasSubstr("rank 0 did not"), HasSubstr("rank 0 went away in call #2, as rank ")));
  }
}

/// Rank 0 has a shorter timeout than the others: it reports to them which rank is lost.
TEST_P(ThreeRanksSuite, TheRankThatGivesUpFirstReportsTheLostOneToAll) {
  Collected collected;
  const int silent = ranks() - 1;
  std::promise<void> over;
  std::shared_future<void> all_gave_up = over.get_future().share();
  std::atomic<int> gave_up = 0;
  const auto body = [&](Communicator& communicator) {
    expect_ok(communicator.barrier(0));
    if (communicator.rank() == silent) return all_gave_up.wait();
    collected.add(communicator, communicator.barrier(1));
    if (++gave_up == silent) over.set_value();
  };
  run_ranks(ranks(), GetParam().transport, body, 600, [](ConnectOptions& options) {
    if (options.rank == 0) options.timeout_s = 5;
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(silent));
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::lost_peer);
    EXPECT_EQ(error.peer, silent) << error.message;
    if (rank == 0) continue;
    EXPECT_THAT(error.message, HasSubstr(fmt::format("rank {} went away in call #2, as rank ", silent)));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, ThreeRanksSuite, testing::ValuesIn(setups({3})), setup_name);
INSTANTIATE_TEST_SUITE_P(Transports, ManyRanksSuite, testing::ValuesIn(setups({8, 16})), setup_name);
INSTANTIATE_TEST_SUITE_P(Transports, CommunicatorSuite, testing::ValuesIn(setups({1, 2, 3, 4})), setup_name);
INSTANTIATE_TEST_SUITE_P(Transports, CompanySuite, testing::ValuesIn(setups({2, 3, 4})), setup_name);

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
