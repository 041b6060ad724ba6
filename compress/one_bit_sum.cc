#include "compress/one_bit_sum.h"

#include <algorithm>

#include "compress/signs.h"

namespace remuda::compress {
namespace {

comm::Chunk values_of(comm::Chunk chunks, size_t count) {
  return {std::min(count, chunks.begin * kChunk), std::min(count, chunks.end * kChunk)};
}

/// A chunk of packed values.
template <typename Byte>
std::span<Byte> packed_chunk(std::span<Byte> packed, size_t chunk) {
  return packed.subspan(chunk * kPackedChunk, kPackedChunk);
}

}  // namespace

Result<OneBitSum> OneBitSum::create(comm::Communicator& ranks, size_t count) {
  REMUDA_ASSIGN(const std::span<std::byte> sum, ranks.allocate(packed_bytes(count)));
  return OneBitSum(ranks, count, sum);
}

OneBitSum::OneBitSum(comm::Communicator& ranks, size_t count, std::span<std::byte> sum)
    : ranks_(&ranks),
      chunks_(comm::even_parts(ranks.size(), chunks_of(count), comm::kCacheLine)),
      owed_(count),
      packed_(packed_bytes(count)),
      sum_(sum) {
  owed_of_sum_.resize(own().size());
  theirs_.resize(chunks_.of(ranks.rank()).size() * kPackedChunk * size_t(ranks.size()));
}

comm::Chunk OneBitSum::own() const { return values_of(chunks_.of(ranks_->rank()), owed_.size()); }

Result<std::span<const std::byte>> OneBitSum::add_up(const AddTo& add, std::span<const float> used, uint32_t label) {
  for (size_t chunk = 0; chunk < chunks_of(owed_.size()); ++chunk) {
    const comm::Chunk range = values_of({chunk, chunk + 1}, owed_.size());
    const auto values = std::span(owed_).subspan(range.begin, range.size());
    add(range, values);
    pack(values, used.subspan(range.begin, range.size()), packed_chunk(std::span(packed_), chunk));
  }
  const comm::Parts parts = chunks_.in_bytes(kPackedChunk);
  REMUDA_TRY(ranks_->all_to_all(packed_, parts, theirs_, label));
  const comm::Chunk own_chunks = chunks_.of(ranks_->rank());
  for (size_t i = 0; i < own_chunks.size(); ++i) {
    const comm::Chunk range = values_of({own_chunks.begin + i, own_chunks.begin + i + 1}, owed_.size());
    const auto sum = std::span(owed_of_sum_).subspan(i * kChunk, range.size());
    const auto used_here = used.subspan(range.begin, range.size());
    for (size_t peer = 0; peer < size_t(ranks_->size()); ++peer)
      add_unpacked(packed_chunk(std::span<const std::byte>(theirs_), peer * own_chunks.size() + i), used_here, sum);
    pack(sum, used_here, packed_chunk(sum_, own_chunks.begin + i));
  }
  REMUDA_TRY(ranks_->gather_parts(sum_, parts, label));
  return sum_;
}

}  // namespace remuda::compress
