#include "train/state_move.h"

#include <algorithm>

#include "train/labels.h"

namespace remuda::train {
namespace {

/// Of a bucket: what each rank has for each other one.
class BucketMove {
 public:
  BucketMove(const FlatLayout& before, const FlatLayout& after, size_t bucket, int ranks)
      : before_(before), after_(after), bucket_(bucket) {
    std::vector<size_t> ends;
    for (int to = 0; to < ranks; ++to) {
      size_t most = 0;
      for (int from = 0; from < ranks; ++from)
        if (from != to) most = std::max(most, range(from, to).size());
      ends.push_back((ends.empty() ? 0 : ends.back()) + most);
    }
    parts_ = comm::Parts(std::move(ends));
  }

  /// What one rank has that another one is to have.
  comm::Chunk range(int from, int to) const {
    const comm::Chunk has = before_.own(bucket_, from), gets = after_.own(bucket_, to);
    const size_t begin = std::max(has.begin, gets.begin);
    return {begin, std::max(begin, std::min(has.end, gets.end))};
  }
  /// Room for what each rank gets from any one.
  const comm::Parts& parts() const { return parts_; }

 private:
  const FlatLayout &before_, &after_;
  size_t bucket_;
  comm::Parts parts_;
};

std::span<std::byte> bytes_on_host(const torch::Tensor& values) {
  return {static_cast<std::byte*>(values.data_ptr()), values.nbytes()};
}

/// A bucket's part, in what its owner has of all of them.
torch::Tensor in_part(const torch::Tensor& owned, size_t at, comm::Chunk part, comm::Chunk range) {
  return owned.narrow(0, int64_t(at + range.begin - part.begin), int64_t(range.size()));
}

}  // namespace

Result<void> move_state(comm::Communicator& communicator, const FlatLayout& before, const FlatLayout& after,
                        const torch::Tensor& from, const torch::Tensor& to) {
  const torch::NoGradGuard no_grad;
  const int rank = communicator.rank(), ranks = communicator.size();
  const auto on_host = from.options().device(torch::kCPU);
  size_t from_at = 0, to_at = 0;
  for (size_t bucket = 0; bucket < before.buckets(); ++bucket) {
    const comm::Chunk had = before.own(bucket, rank), gets = after.own(bucket, rank);
    const BucketMove move(before, after, bucket, ranks);
    const comm::Parts& parts = move.parts();
    if (const comm::Chunk kept = move.range(rank, rank); kept.size() > 0)
      in_part(to, to_at, gets, kept).copy_(in_part(from, from_at, had, kept));
    if (parts.count() > 0) {
      const torch::Tensor mine = torch::zeros({int64_t(parts.count())}, on_host);
      const size_t room = parts.of(rank).size();
      const torch::Tensor theirs = torch::empty({int64_t(room) * ranks}, on_host);
      for (int other = 0; other < ranks; ++other) {
        const comm::Chunk range = move.range(rank, other);
        if (other == rank || range.size() == 0) continue;
        mine.narrow(0, int64_t(parts.of(other).begin), int64_t(range.size())).copy_(in_part(from, from_at, had, range));
      }
      REMUDA_TRY(communicator.all_to_all(bytes_on_host(mine), parts.in_bytes(size_t(mine.element_size())),
                                         bytes_on_host(theirs), label::kStateMove));
      for (int other = 0; other < ranks; ++other) {
        const comm::Chunk range = move.range(other, rank);
        if (other == rank || range.size() == 0) continue;
        in_part(to, to_at, gets, range).copy_(theirs.narrow(0, int64_t(room) * other, int64_t(range.size())));
      }
    }
    from_at += had.size();
    to_at += gets.size();
  }
  return {};
}

}  // namespace remuda::train
