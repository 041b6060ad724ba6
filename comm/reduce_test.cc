#include "comm/reduce.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace remuda::comm {
namespace {

template <typename T>
std::byte* bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values)).data();
}

/// The sum of `ranks` inputs of `count` values, into one output of its own or into all inputs.
template <typename T>
void expect_sums_in_rank_order(size_t ranks, size_t count, bool in_place) {
  std::mt19937 random(static_cast<unsigned>(ranks * 1000 + count));
  std::vector<std::vector<T>> inputs(ranks, std::vector<T>(count));
  for (auto& input : inputs)
    for (T& value : input)
      value = std::is_integral_v<T> ? static_cast<T>(random())
                                    : static_cast<T>(std::ldexp(random() - 2e9, static_cast<int>(random() % 20) - 40));
  std::vector<T> expected = inputs[0];
  for (size_t rank = 1; rank < ranks; ++rank)
    for (size_t i = 0; i < count; ++i) expected[i] += inputs[rank][i];
  std::vector<T> output(count);
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
  for (auto& input : inputs) {
    in.push_back(bytes_of(input));
    if (in_place) out.push_back(bytes_of(input));
  }
  if (!in_place) out.push_back(bytes_of(output));
  add_up(kElement<T>, in, out, count);
  if (!in_place) inputs = {output};
  for (const auto& result : inputs) EXPECT_EQ(result, expected) << ranks << " ranks, " << count << " values";
}

TEST(AddUp, GivesTheSameBitsInPlaceOrNot) {
  for (const size_t ranks : {1, 2, 3, 5, 8, 16})
    for (const size_t count : {0, 1, 2047, 2048, 2049, 5000})
      for (const bool in_place : {false, true}) {
        expect_sums_in_rank_order<float>(ranks, count, in_place);
        expect_sums_in_rank_order<double>(ranks, count, in_place);
        expect_sums_in_rank_order<int64_t>(ranks, count, in_place);
      }
}

/// The one input itself, in float32.
template <typename T>
std::vector<float> widened(std::vector<T> values) {
  std::vector<float> sums(values.size());
  const std::byte* const in = bytes_of(values);
  std::byte* const out = bytes_of(sums);
  add_up(kElement<T>, std::span(&in, 1), std::span(&out, 1), values.size());
  return sums;
}

TEST(AddUp, ReadsEveryFloat16) {
  std::vector<Float16> all(1 << 16);
  for (size_t bits = 0; bits < all.size(); ++bits) all[bits].bits = static_cast<uint16_t>(bits);
  const std::vector<float> read = widened(all);
  for (size_t bits = 0; bits < all.size(); ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    const float expected = bits >> 15 ? -magnitude : magnitude;
    if (exponent == 31)
      ASSERT_EQ(std::isnan(read[bits]), fraction != 0) << bits;
    else
      ASSERT_EQ(read[bits], expected) << bits;
  }
}

TEST(AddUp, OfHalvesKeepsWhatTheyCannotHold) {
  const auto sum_of_three = []<typename T>(T one, T small) {
    std::vector<T> first{one}, second{small}, third{small};
    float sum = 0;
    const std::byte* const in[] = {bytes_of(first), bytes_of(second), bytes_of(third)};
    std::byte* const out = reinterpret_cast<std::byte*>(&sum);
    add_up(kElement<T>, in, std::span(&out, 1), 1);
    return sum;
  };
  EXPECT_EQ(sum_of_three(BFloat16{0x3f80}, BFloat16{0x3980}), 1 + 2 * std::ldexp(1.0f, -12));
  EXPECT_EQ(sum_of_three(Float16{0x3c00}, Float16{0x0c00}), 1 + 2 * std::ldexp(1.0f, -12));
}

}  // namespace
}  // namespace remuda::comm
