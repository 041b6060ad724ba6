#include "comm/reduce.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace remuda::comm {
namespace {

/// The sum of `ranks` inputs of `count` values, into one output of its own or into all inputs.
template <typename T>
void expect_sums_in_rank_order(size_t ranks, size_t count, bool in_place) {
  std::mt19937 random(static_cast<unsigned>(ranks * 1000 + count));
  std::vector<std::vector<T>> inputs(ranks, std::vector<T>(count));
  for (auto& input : inputs)
    for (T& value : input) value = static_cast<T>(std::ldexp(random() - 2e9, static_cast<int>(random() % 20) - 40));
  std::vector<T> expected = inputs[0];
  for (size_t rank = 1; rank < ranks; ++rank)
    for (size_t i = 0; i < count; ++i) expected[i] += inputs[rank][i];
  std::vector<T> output(count);
  std::vector<const T*> in;
  std::vector<T*> out;
  for (auto& input : inputs) {
    in.push_back(input.data());
    if (in_place) out.push_back(input.data());
  }
  if (!in_place) out.push_back(output.data());
  sum_in_rank_order<T>(in, out, count);
  if (!in_place) inputs = {output};
  for (const auto& result : inputs) EXPECT_EQ(result, expected) << ranks << " ranks, " << count << " values";
}

TEST(SumInRankOrder, GivesTheSameBitsInPlaceOrNot) {
  for (const size_t ranks : {1, 2, 3, 5, 8, 16})
    for (const size_t count : {0, 1, 2047, 2048, 2049, 5000})
      for (const bool in_place : {false, true}) {
        expect_sums_in_rank_order<float>(ranks, count, in_place);
        expect_sums_in_rank_order<double>(ranks, count, in_place);
      }
}

}  // namespace
}  // namespace remuda::comm
