#include "compress/one_bit_sum.h"

#include <gtest/gtest.h>
#include <mutex>
#include <random>

#include "comm/testing/run_ranks.h"
#include "compress/signs.h"

namespace remuda::compress {
namespace {

using Transport = comm::ConnectOptions::Transport;

constexpr size_t kCount = 5 * kChunk + 77;

/// What a rank has in a round; a rank whose share is 0 has nothing.
std::vector<float> values_of(int rank, int round, double share) {
  std::mt19937 random(unsigned(100 * round + rank));
  std::vector<float> values(kCount);
  for (float& value : values) value = float(share * (random() / 4294967296.0 - 0.4));
  return values;
}

OneBitSum open(comm::Communicator& ranks) { return std::move(OneBitSum::create(ranks, kCount).value()); }

std::vector<float> add_up(OneBitSum& sum, const std::vector<float>& values, const std::vector<float>& used) {
  const auto add = [&](comm::Chunk range, std::span<float> to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += values[range.begin + i] * (used[range.begin + i] != 0);
  };
  const auto packed = sum.add_up(add, used, 1);
  EXPECT_TRUE(packed);
  std::vector<float> all(kCount);
  if (packed) unpack(*packed, used, all);
  return all;
}

/// The sums of all rounds, and what is owed at the end, of all ranks together.
struct Books {
  std::mutex mutex;
  std::vector<double> given = std::vector<double>(kCount), owed = std::vector<double>(kCount);
  std::vector<std::vector<float>> received;  ///< of each rank, in all rounds
};

/// Over shares with none, ranks of which one owns nothing, and both ways to reach them.
TEST(OneBitSum, WhatWasSentAndWhatIsOwedAreTheSumOfAllValues) {
  for (const Transport transport : {Transport::tcp, Transport::shared_memory}) {
    for (const std::vector<double>& shares : {std::vector{1.0}, std::vector{0.7, 0.3}, std::vector{0.0, 1.0, 0.0},
                                              std::vector{0.1, 0.2, 0.0, 0.3, 0.1, 0.2, 0.1}}) {
      Books books;
      books.received.resize(shares.size());
      comm::run_ranks(int(shares.size()), transport, [&](comm::Communicator& communicator) {
        OneBitSum sum = open(communicator);
        std::vector<float> used(kCount, 1);
        for (size_t i = 0; i < kCount; i += 10) used[i] = 0;
        for (int round = 0; round < 20; ++round) {
          const auto values = values_of(communicator.rank(), round, shares[size_t(communicator.rank())]);
          const std::vector<float> all = add_up(sum, values, used);
          const std::lock_guard lock(books.mutex);
          for (size_t i = 0; i < kCount; ++i) books.given[i] += used[i] != 0 ? double(values[i]) : 0;
          auto& received = books.received[size_t(communicator.rank())];
          received.insert(received.end(), all.begin(), all.end());
        }
        const std::lock_guard lock(books.mutex);
        for (size_t i = 0; i < kCount; ++i) books.owed[i] += double(sum.owed()[i]);
        for (size_t i = 0; i < sum.owed_of_sum().size(); ++i)
          books.owed[sum.own().begin + i] += double(sum.owed_of_sum()[i]);
      });
      std::vector<double> sent(kCount);
      for (size_t i = 0; i < books.received[0].size(); ++i) sent[i % kCount] += double(books.received[0][i]);
      for (size_t i = 0; i < kCount; ++i) ASSERT_NEAR(sent[i] + books.owed[i], books.given[i], 2e-5) << i;
      for (const auto& received : books.received) EXPECT_EQ(received, books.received[0]);
    }
  }
}

TEST(OneBitSum, TakesAThirtiethOfTheBytesOfAnAllReduce) {
  comm::run_ranks(3, Transport::tcp, [](comm::Communicator& communicator) {
    constexpr size_t kMany = 300 * kChunk;
    OneBitSum sum = std::move(OneBitSum::create(communicator, kMany).value());
    const auto floats = communicator.allocate(kMany * sizeof(float)).value();
    const std::vector<float> used(kMany, 1);
    const uint64_t before = communicator.sent_bytes();
    ASSERT_TRUE(communicator.all_reduce(comm::Values(comm::Element::float32, floats), 1));
    const uint64_t between = communicator.sent_bytes();
    ASSERT_TRUE(sum.add_up([](comm::Chunk, std::span<float>) {}, used, 1));
    EXPECT_LT(30 * (communicator.sent_bytes() - between), between - before);
  });
}

}  // namespace
}  // namespace remuda::compress
