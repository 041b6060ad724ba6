#include "compress/signs.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <vector>

namespace remuda::compress {
namespace {

std::vector<float> some_values(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(float(random()) - 2e9f, int(random() % 8) - 32);
  return values;
}

struct Sent {
  std::vector<float> values, owed;
};

Sent send(std::vector<float> values, const std::vector<float>& used) {
  std::vector<std::byte> packed(packed_bytes(values.size()));
  std::vector<float> there(values.size(), 7);
  pack(values, used, packed);
  unpack(packed, used, there);
  return {there, values};
}

TEST(Signs, AreOneBitForEachValueAndAScaleForEachChunk) {
  EXPECT_EQ(packed_bytes(0), 0u);
  EXPECT_EQ(packed_bytes(1), 260u);
  EXPECT_EQ(packed_bytes(2048), 260u);
  EXPECT_EQ(packed_bytes(2049), 520u);
  EXPECT_GT(4.0 * (25 << 20) / double(packed_bytes(25 << 20)), 31);
}

TEST(Signs, TheScaleIsTheMeanOfWhatIsUsed) {
  const std::vector<float> values{1, -3, 0, 8}, used{1, 0.5, 0, -1};
  const Sent sent = send(values, used);
  EXPECT_EQ(sent.values, (std::vector<float>{4, -4, 0, 4}));
  EXPECT_EQ(sent.owed, (std::vector<float>{-3, 1, 0, 4}));
}

TEST(Signs, ChunksHaveScalesOfTheirOwn) {
  std::vector<float> values(kChunk, 2.0f);
  values.resize(kChunk + 100, -5.0f);
  EXPECT_EQ(send(values, std::vector<float>(values.size(), 1)).values, values);
}

TEST(Signs, ZerosHaveASignAndNothingToSendIsNothing) {
  const std::vector<float> zeros{0.0f, -0.0f, 0.0f}, used{1, 1, 0};
  const Sent sent = send(zeros, used);
  EXPECT_EQ(sent.values, zeros);
  EXPECT_EQ(send({}, {}).values, std::vector<float>());
  EXPECT_EQ(send({0, 0}, {0, 0}).values, (std::vector<float>{0, 0}));
}

/// Whatever the length: of chunks that are not whole too, and of words that are not.
TEST(Signs, WhatWasSentAndWhatIsOwedAreTheValue) {
  for (const size_t count : {1u, 31u, 32u, 33u, 2047u, 2048u, 2049u, 10000u}) {
    const std::vector<float> values = some_values(count, unsigned(count));
    std::vector<float> used(count, 1);
    const Sent sent = send(values, used);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(values[i] - sent.values[i], sent.owed[i]) << i << " of " << count;
      ASSERT_EQ(std::signbit(sent.values[i]), std::signbit(values[i])) << i << " of " << count;
    }
  }
}

/// Added up in float64, of numbers of up to 1000 that float32 rounds at the seventh digit.
TEST(Signs, AllThatWasSentAndWhatIsStillOwedAreTheSum) {
  std::mt19937 random(3);
  const std::vector<float> used(4 * kChunk, 1);
  std::vector<float> owed(used.size());
  std::vector<double> given(used.size()), sent(used.size());
  for (int round = 0; round < 200; ++round) {
    for (size_t i = 0; i < owed.size(); ++i) {
      const float value = float(int(random() % 2048) - 1024);
      owed[i] += value;
      given[i] += value;
    }
    std::vector<std::byte> packed(packed_bytes(owed.size()));
    pack(owed, used, packed);
    std::vector<float> there(owed.size());
    unpack(packed, used, there);
    for (size_t i = 0; i < owed.size(); ++i) sent[i] += there[i];
  }
  for (size_t i = 0; i < owed.size(); ++i) ASSERT_NEAR(sent[i] + owed[i], given[i], 0.05) << i;
  const double mean =
      std::accumulate(owed.begin(), owed.end(), 0.0, [](double sum, float x) { return sum + std::abs(x); });
  EXPECT_LT(mean / double(owed.size()), 5000) << "what is owed does not grow with the rounds";
}

TEST(Signs, AreAddedToWhatIsThere) {
  const std::vector<float> values = some_values(5000, 4), used(5000, 1);
  std::vector<float> left = values, there(5000), sum(5000, 1.5f);
  std::vector<std::byte> packed(packed_bytes(5000));
  pack(left, used, packed);
  unpack(packed, used, there);
  add_unpacked(packed, used, sum);
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], 1.5f + there[i]);
}

}  // namespace
}  // namespace remuda::compress
