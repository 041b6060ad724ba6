#include "compress/low_rank.h"

#include <algorithm>
#include <cmath>

#include "base/vector_clones.h"
#include "compress/portable.h"

namespace remuda::compress {
namespace {

/// Of a vector's length: what is left of it once the others are taken out is then float32's rounding.
constexpr double kNothing = 1e-6;
constexpr size_t kDotLanes = 32;  // as many sums as fill the registers that a compiler may use

REMUDA_VECTOR_CLONES float float_dot(const float* __restrict a, const float* __restrict b, size_t count) {
  float sums[kDotLanes] = {};
  const size_t whole = count / kDotLanes * kDotLanes;
  for (size_t i = 0; i < whole; i += kDotLanes)
    for (size_t lane = 0; lane < kDotLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  float sum = 0;
  for (const float lane : sums) sum += lane;
  for (size_t i = whole; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

double length(std::span<const float> values) { return std::sqrt(dot(values, values)); }

template <typename Float>
std::span<Float> vector_of(std::span<Float> side, size_t rank, size_t which) {
  const size_t size = side.size() / rank;
  return side.subspan(which * size, size);
}

void scale(std::span<float> values, double factor) {
  for (float& value : values) value = float(value * factor);
}

void take_out(std::span<float> from, std::span<const float> direction) {
  add_scaled(from, float(-dot(from, direction)), direction);
}

/// SplitMix64 (Steele, Lea and Flood 2014).
uint64_t mix(uint64_t state) {
  state += 0x9e3779b97f4a7c15;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

}  // namespace

size_t rank_of(Shape shape, size_t most) {
  const size_t rank = std::min({most, shape.rows, shape.columns});
  return 2 * rank * (shape.rows + shape.columns) < shape.count() ? rank : 0;
}

size_t sent_values(Shape shape, size_t most) {
  const size_t rank = rank_of(shape, most);
  return rank > 0 ? rank * (shape.rows + shape.columns) : shape.count();
}

void project(std::span<const float> matrix, std::span<const float> right, size_t rank, std::span<float> left) {
  const size_t rows = left.size() / rank, columns = right.size() / rank;
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < rank; ++i)
      left[i * rows + row] = float_dot(matrix.data() + row * columns, right.data() + i * columns, columns);
}

void orthogonalize(std::span<float> left, size_t rank) {
  for (size_t i = 0; i < rank; ++i) {
    const std::span<float> own = vector_of(left, rank, i);
    const double before = length(own);
    for (int pass = 0; pass < 2; ++pass)
      for (size_t other = 0; other < i; ++other) take_out(own, vector_of(left, rank, other));
    const double after = length(own);
    scale(own, after > kNothing * before ? 1 / after : 0);
  }
}

void project_back(std::span<const float> matrix, std::span<const float> left, size_t rank, std::span<float> right) {
  const size_t rows = left.size() / rank, columns = right.size() / rank;
  std::ranges::fill(right, 0.0f);
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < rank; ++i)
      add_scaled(vector_of(right, rank, i), left[i * rows + row], matrix.subspan(row * columns, columns));
}

void add_product(std::span<float> matrix, float sign, std::span<const float> left, std::span<const float> right,
                 size_t rank) {
  const size_t rows = left.size() / rank, columns = right.size() / rank;
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < rank; ++i)
      add_scaled(matrix.subspan(row * columns, columns), sign * left[i * rows + row], vector_of(right, rank, i));
}

void begin(std::span<float> right, uint64_t seed) {
  for (float& value : right) value = float(int64_t(mix(++seed) >> 40)) / float(1 << 23) - 1;
}

void renew(std::span<float> right, size_t rank, uint64_t seed) {
  for (size_t i = 0; i < rank; ++i) {
    const std::span<float> own = vector_of(right, rank, i);
    const double now = length(own);
    if (now > 0)
      scale(own, 1 / now);
    else
      begin(own, mix(seed + i));
  }
}

}  // namespace remuda::compress
