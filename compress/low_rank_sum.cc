#include "compress/low_rank_sum.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "compress/portable.h"

namespace remuda::compress {
namespace {

std::span<float> part(std::span<float> values, comm::Chunk range) { return values.subspan(range.begin, range.size()); }

}  // namespace

std::vector<Placed> in_a_row(std::span<const Shape> shapes) {
  std::vector<Placed> matrices;
  size_t begin = 0;
  for (const Shape& shape : shapes) matrices.push_back({shape, std::exchange(begin, begin + shape.count())});
  return matrices;
}

Result<LowRankSum> LowRankSum::create(comm::Communicator& ranks, std::span<const Placed> matrices, size_t count,
                                      size_t rank) {
  LowRankSum sum(ranks, matrices, count, rank);
  const auto allocate = [&](size_t floats) -> Result<std::span<float>> {
    REMUDA_ASSIGN(const std::span<std::byte> bytes, ranks.allocate(floats * sizeof(float)));
    return std::span(reinterpret_cast<float*>(bytes.data()), floats);
  };
  REMUDA_ASSIGN(sum.left_, allocate(sum.left_count_));
  REMUDA_ASSIGN(sum.right_, allocate(sum.right_count_));
  for (const Part& one : sum.parts_)
    if (one.rank > 0) begin(part(sum.right_, one.right), one.begin);
  return sum;
}

LowRankSum::LowRankSum(comm::Communicator& ranks, std::span<const Placed> matrices, size_t all, size_t rank)
    : ranks_(&ranks), owed_(all) {
  const auto take = [](size_t& count, size_t more) { return comm::Chunk{count, count += more}; };
  for (const auto& [shape, begin] : matrices) {
    Part one{begin, shape.count(), rank_of(shape, rank), {}, {}};
    one.left = take(left_count_, one.rank > 0 ? one.rank * shape.rows : shape.count());
    one.right = take(right_count_, one.rank * shape.columns);
    parts_.push_back(one);
  }
}

void LowRankSum::project_all() {
  for (const Part& one : parts_) {
    const auto mine = std::span(owed_).subspan(one.begin, one.count);
    const auto left = part(left_, one.left);
    if (one.rank > 0) {
      project(mine, part(right_, one.right), one.rank, left);
    } else {
      std::ranges::copy(mine, left.begin());
      std::ranges::fill(mine, 0.0f);
    }
  }
}

void LowRankSum::project_back_all() {
  for (const Part& one : parts_) {
    if (one.rank == 0) continue;
    const auto mine = std::span(owed_).subspan(one.begin, one.count);
    const auto left = part(left_, one.left), right = part(right_, one.right);
    orthogonalize(left, one.rank);
    project_back(mine, left, one.rank, right);
    add_product(mine, -1, left, right, one.rank);
  }
}

void LowRankSum::restore_all(std::span<float> values) {
  for (const Part& one : parts_) {
    const auto sum = values.subspan(one.begin, one.count);
    const auto left = part(left_, one.left), right = part(right_, one.right);
    if (one.rank == 0) {
      std::ranges::copy(left, sum.begin());
      continue;
    }
    std::ranges::fill(sum, 0.0f);
    add_product(sum, 1, left, right, one.rank);
    renew(right, one.rank, one.begin);
  }
}

Result<void> LowRankSum::add_up(std::span<float> values, float factor, uint32_t label) {
  REMUDA_CHECK(values.size() == owed_.size(), "as many values as it was made for");
  add_scaled(owed_, factor, values);
  if (ranks_->size() == 1) {
    std::ranges::copy(owed_, values.begin());
    std::ranges::fill(owed_, 0.0f);
    return {};
  }
  project_all();
  REMUDA_TRY(ranks_->all_reduce(left_, label));
  project_back_all();
  if (!right_.empty()) REMUDA_TRY(ranks_->all_reduce(right_, label));
  restore_all(values);
  return {};
}

}  // namespace remuda::compress
