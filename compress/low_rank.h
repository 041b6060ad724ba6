// LowRank: a matrix as the product of two thin ones, left x right, found by half a step of power iteration: PowerSGD's
// arithmetic (Vogels et al. 2019, arXiv:1905.13727), in float32 on the host.
//
//   project:        left  = matrix x right'   with the right side of the time before
//   orthogonalize:  the columns of left become orthonormal
//   project_back:   right = left' x matrix    so left x right is matrix, projected on what left spans
//
// All three are linear in the matrix except for the one in the middle: sums over hosts may be taken after the first and
// after the last, of the thin sides only. A matrix of no higher rank than the sides have comes out whole.
//
// Row-major matrices; a side is its vectors, one after the other: `rank` of them, as long as the matrix has rows (left)
// or columns (right). Values are finite, up to 1e25. Pure; products and sums are rounded one by one, in one order, so
// every processor gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace remuda::compress {

struct Shape {
  size_t rows = 0, columns = 0;
  size_t count() const { return rows * columns; }
};

/// The vectors of each side; 0 where they would not be half as large as the matrix (the rate below which PyTorch's
/// powerSGD_hook does not compress): it is sent as it is.
size_t rank_of(Shape shape, size_t most);
/// Values of both sides, or of the matrix where there are none.
size_t sent_values(Shape shape, size_t most);

void project(std::span<const float> matrix, std::span<const float> right, size_t rank, std::span<float> left);
/// By Gram and Schmidt, twice. A vector that is a sum of those before it becomes 0.
void orthogonalize(std::span<float> left, size_t rank);
void project_back(std::span<const float> matrix, std::span<const float> left, size_t rank, std::span<float> right);
/// matrix += sign left x right.
void add_product(std::span<float> matrix, float sign, std::span<const float> left, std::span<const float> right,
                 size_t rank);

/// The right side to begin with: the same random values for one `seed`, everywhere.
void begin(std::span<float> right, uint64_t seed);
/// That of the next time: each vector in length 1, or begun anew where it is 0 and would stay so.
void renew(std::span<float> right, size_t rank, uint64_t seed);

}  // namespace remuda::compress
