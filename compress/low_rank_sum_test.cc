#include "compress/low_rank_sum.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <mutex>
#include <random>

#include "comm/testing/run_ranks.h"
#include "compress/portable.h"

namespace remuda::compress {
namespace {

using Transport = comm::ConnectOptions::Transport;

/// A matrix, a vector, a matrix that is too small, and a wide one.
const std::vector<Shape> kShapesOfAll{{50, 60}, {40, 1}, {4, 5}, {20, 200}};
constexpr size_t kAll = 3000 + 40 + 20 + 4000, kSmallBegin = 3000, kSmallEnd = 3060;

std::vector<float> given_by(int rank, int round, double share) {
  std::mt19937 random(unsigned(100 * round + rank));
  std::vector<float> values(kAll);
  for (float& value : values) value = float(share * (random() / 4294967296.0 - 0.4));
  return values;
}

LowRankSum open(comm::Communicator& ranks, size_t rank) {
  return std::move(LowRankSum::create(ranks, in_a_row(kShapesOfAll), kAll, rank).value());
}

struct SumBooks {
  std::mutex mutex;
  std::vector<double> given = std::vector<double>(kAll), owed = std::vector<double>(kAll);
  std::vector<std::vector<float>> received;  ///< of each rank, in all rounds
};

/// Over shares with none, and both ways to reach them.
TEST(LowRankSum, WhatWasSentAndWhatIsOwedAreTheSumOfAllValues) {
  for (const Transport transport : {Transport::tcp, Transport::shared_memory})
    for (const std::vector<double>& shares :
         {std::vector{1.0}, std::vector{0.7, 0.3}, std::vector{0.0, 1.0, 0.0}, std::vector{0.1, 0.2, 0.0, 0.7}}) {
      SumBooks books;
      books.received.resize(shares.size());
      comm::run_ranks(int(shares.size()), transport, [&](comm::Communicator& communicator) {
        LowRankSum sum = open(communicator, 2);
        const auto rank = size_t(communicator.rank());
        for (int round = 0; round < 20; ++round) {
          auto values = given_by(communicator.rank(), round, shares[rank]);
          const auto given = values;
          ASSERT_TRUE(sum.add_up(values, 0.5f, 1));
          const std::lock_guard lock(books.mutex);
          for (size_t i = 0; i < kAll; ++i) books.given[i] += 0.5 * double(given[i]);
          books.received[rank].insert(books.received[rank].end(), values.begin(), values.end());
        }
        if (shares[rank] == 0) {
          EXPECT_EQ(dot(sum.owed(), sum.owed()), 0) << "who gives nothing owes nothing";
        }
        const std::lock_guard lock(books.mutex);
        for (size_t i = 0; i < kAll; ++i) books.owed[i] += double(sum.owed()[i]);
      });
      std::vector<double> sent(kAll);
      for (size_t i = 0; i < books.received[0].size(); ++i) sent[i % kAll] += double(books.received[0][i]);
      for (size_t i = 0; i < kAll; ++i) ASSERT_NEAR(sent[i] + books.owed[i], books.given[i], 2e-5) << i;
      for (size_t i = kSmallBegin; i < kSmallEnd; ++i) ASSERT_EQ(books.owed[i], 0) << i;
      for (const auto& received : books.received) EXPECT_EQ(received, books.received[0]);
      const double owed = std::abs(books.owed[7]);
      EXPECT_TRUE(shares.size() == 1 ? owed == 0 : owed > 1e-3) << owed;
    }
}

/// Each rank's matrices are of rank 1, along vectors of its own.
TEST(LowRankSum, OfMatricesOfLowRankIsExact) {
  comm::run_ranks(3, Transport::tcp, [&](comm::Communicator& communicator) {
    LowRankSum sum = open(communicator, 3);
    std::vector<double> expected(kAll);
    std::vector<float> mine(kAll);
    for (int rank = 0; rank < 3; ++rank) {
      std::vector<float> values = given_by(rank, 0, 1);
      size_t begin = 0;
      for (const Shape& shape : kShapesOfAll) {
        if (rank_of(shape, 3) > 0) {
          const auto matrix = std::span(values).subspan(begin, shape.count());
          const std::vector<float> left(matrix.begin(), matrix.begin() + ptrdiff_t(shape.rows));
          const std::vector<float> right(matrix.end() - ptrdiff_t(shape.columns), matrix.end());
          std::ranges::fill(matrix, 0.0f);
          add_product(matrix, 1, left, right, 1);
        }
        begin += shape.count();
      }
      for (size_t i = 0; i < kAll; ++i) expected[i] += double(values[i]);
      if (rank == communicator.rank()) mine = values;
    }
    ASSERT_TRUE(sum.add_up(mine, 1, 1));
    for (size_t i = 0; i < kAll; ++i) ASSERT_NEAR(mine[i], expected[i], 5e-6) << i;
    EXPECT_LT(dot(sum.owed(), sum.owed()), 1e-8);
  });
}

/// Gradients may be nothing for a while: what comes after that must not be owed for ever.
TEST(LowRankSum, AfterNothingItSendsAgain) {
  comm::run_ranks(2, Transport::tcp, [&](comm::Communicator& communicator) {
    LowRankSum sum = open(communicator, 2);
    std::vector<float> values(kAll, 0);
    ASSERT_TRUE(sum.add_up(values, 1, 1));
    EXPECT_EQ(values, std::vector<float>(kAll, 0));
    values.assign(kAll, 1);  // of rank 1
    ASSERT_TRUE(sum.add_up(values, 1, 1));
    for (size_t i = 0; i < kAll; ++i) ASSERT_NEAR(values[i], 2, 1e-4) << i;
  });
}

TEST(LowRankSum, SendsTheSidesAndWhatIsSmall) {
  comm::run_ranks(2, Transport::tcp, [](comm::Communicator& communicator) {
    LowRankSum sum = open(communicator, 2);
    EXPECT_EQ(sum.sent(), 2 * (50 + 60 + 20 + 200) + size_t(60));
    size_t expected = 0;
    for (const Shape& shape : kShapesOfAll) expected += sent_values(shape, 2);
    EXPECT_EQ(sum.sent(), expected);
    std::vector<float> values(kAll, 1);
    const uint64_t before = communicator.sent_bytes();
    ASSERT_TRUE(sum.add_up(values, 1, 1));
    EXPECT_NEAR(double(communicator.sent_bytes() - before), 4.0 * double(sum.sent()), 600)
        << "and descriptions of calls";
  });
}

TEST(LowRankSum, OfVectorsOnlyIsTheirSum) {
  comm::run_ranks(2, Transport::tcp, [](comm::Communicator& communicator) {
    const std::vector<Shape> shapes{{5, 1}};
    LowRankSum sum = std::move(LowRankSum::create(communicator, in_a_row(shapes), 5, 4).value());
    std::vector<float> values(5, float(1 + communicator.rank()));
    ASSERT_TRUE(sum.add_up(values, 2, 1));
    EXPECT_EQ(values, std::vector<float>(5, 6));
  });
}

/// What lies between matrices is nobody's: it is neither sent nor owed, nor does it change what is.
TEST(LowRankSum, LeavesAloneWhatIsInNoMatrix) {
  comm::run_ranks(2, Transport::shared_memory, [](comm::Communicator& communicator) {
    constexpr size_t kGap = 12;
    std::vector<Placed> apart = in_a_row(kShapesOfAll);
    for (size_t i = 0; i < apart.size(); ++i) apart[i].begin += i * kGap;
    const size_t count = kAll + 3 * kGap;
    LowRankSum sum = std::move(LowRankSum::create(communicator, apart, count, 2).value());
    LowRankSum dense = open(communicator, 2);
    EXPECT_EQ(sum.sent(), dense.sent());
    const std::vector<float> given = given_by(communicator.rank(), 0, 1);
    std::vector<float> values(count);
    for (size_t i = 0, at = 0; i < apart.size(); at += kShapesOfAll[i++].count())
      std::copy_n(given.begin() + long(at), kShapesOfAll[i].count(), values.begin() + long(apart[i].begin));
    ASSERT_TRUE(sum.add_up(values, 1, 1));
    std::vector<bool> in_matrix(count);
    for (size_t i = 0; i < apart.size(); ++i)
      std::fill_n(in_matrix.begin() + long(apart[i].begin), kShapesOfAll[i].count(), true);
    for (size_t i = 0; i < count; ++i) {
      if (in_matrix[i]) continue;
      EXPECT_EQ(values[i], 0);
      EXPECT_EQ(sum.owed()[i], 0);
    }
  });
}

}  // namespace
}  // namespace remuda::compress
