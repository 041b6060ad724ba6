#include "train/sum_of_squares.h"

#include <algorithm>
#include <cmath>

namespace remuda::train {
namespace {

constexpr size_t kLanes = 32;    // as many sums as fill the registers that a compiler may use
constexpr size_t kBlock = 4096;  // added up in the values' own type

double add_plainly(const auto& block) {
  double sum = 0;
  for (const double value : block) sum += value * value;
  return sum;
}

template <typename T>
double add_block(std::span<const T> block) {
  T lanes[kLanes] = {};
  for (size_t i = 0; i < block.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += block[i + lane] * block[i + lane];
  double sum = 0;
  for (const T lane : lanes) sum += double(lane);
  return sum;
}

/// Squares of values above 1e19 are beyond float32, so a block whose sum is not finite is added up again.
template <typename T>
double add(std::span<const T> values) {
  double sum = 0;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    const size_t whole = block.size() / kLanes * kLanes;
    const double of_block = add_block<T>(block.first(whole)) + add_plainly(block.subspan(whole));
    sum += std::isfinite(of_block) ? of_block : add_plainly(block);
  }
  return sum;
}

}  // namespace

double sum_of_squares(std::span<const float> values) { return add(values); }
double sum_of_squares(std::span<const double> values) { return add(values); }

double sum_of_squares(const torch::Tensor& values) {
  double sum = 0;
  AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "sum_of_squares", [&] {
    sum = sum_of_squares(std::span<const scalar_t>(values.data_ptr<scalar_t>(), size_t(values.numel())));
  });
  return sum;
}

}  // namespace remuda::train
