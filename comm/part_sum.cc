#include "comm/part_sum.h"

#include <algorithm>

#include "comm/reduce.h"

namespace remuda::comm {
namespace {

constexpr size_t kSumBytes = 64 << 10;  // added up at a time; the next peers send while it is sent on
constexpr size_t kRingBytes = 4 * kSumBytes;

size_t whole_lines(size_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

}  // namespace

void PartSum::begin(int mine, int ranks, Element type, Pieces<std::byte> own, std::byte* sum,
                    const std::vector<bool>& silent) {
  mine_ = mine;
  type_ = type;
  sum_ = sum;
  own_ = std::move(own);
  bytes_ = own_.left();
  ring_bytes_ = std::clamp(whole_lines(bytes_), kCacheLine, kRingBytes);
  got_.assign(static_cast<size_t>(ranks), 0);
  got_[static_cast<size_t>(mine)] = bytes_;
  silent_ = silent;
  silent_.resize(got_.size());
  for (size_t rank = 0; rank < got_.size(); ++rank)
    if (silent_[rank]) got_[rank] = bytes_;
  const size_t lines = got_.size() * ring_bytes_ / kCacheLine;
  if (rings_.size() < lines) rings_.resize(lines);
  add_what_is_there();  // a rank that is alone has all
}

std::byte* PartSum::ring(int rank) { return rings_[static_cast<size_t>(rank) * ring_bytes_ / kCacheLine].bytes; }

std::span<std::byte> PartSum::room(int rank) {
  const size_t got = got_[static_cast<size_t>(rank)], at = got % ring_bytes_;
  const size_t end = std::min(bytes_, done() + ring_bytes_);
  return {ring(rank) + at, std::min(end - got, ring_bytes_ - at)};
}

void PartSum::take(int rank, size_t bytes) {
  got_[static_cast<size_t>(rank)] += bytes;
  add_what_is_there();
}

void PartSum::add_what_is_there() {
  const size_t of_all = *std::ranges::min_element(got_);
  while (done() < bytes_ && of_all >= std::min(done() + kSumBytes, bytes_))
    add_next(std::min(kSumBytes, bytes_ - done()));
}

void PartSum::add_next(size_t bytes) {
  while (bytes > 0) {
    const std::span<std::byte> here = own_.front().first(std::min(bytes, own_.front().size()));
    const size_t at = done() % ring_bytes_;
    in_.clear();
    for (int rank = 0; rank < static_cast<int>(got_.size()); ++rank)
      if (!silent_[static_cast<size_t>(rank)]) in_.push_back(rank == mine_ ? here.data() : ring(rank) + at);
    const size_t count = here.size() / size_of(type_);
    std::byte* const to = sum_ ? sum_ : here.data();
    comm::add_up(type_, in_, std::span(&to, 1), count);
    if (sum_) sum_ += count * size_of(sum_of(type_));
    own_.take(here.size());
    bytes -= here.size();
  }
}

}  // namespace remuda::comm
