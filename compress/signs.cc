#include "compress/signs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/vector_clones.h"

namespace remuda::compress {
namespace {

constexpr size_t kLanes = 32;  // values to a word; also as many sums as fill the registers that a compiler may use
constexpr size_t kWords = kChunk / kLanes;
constexpr uint32_t kSign = 1u << 31;

struct Packed {
  float scale;
  uint32_t negative[kWords];
};
static_assert(sizeof(Packed) == kPackedChunk);

uint32_t mask_of(float used) { return used != 0 ? ~0u : 0; }

REMUDA_VECTOR_CLONES float mean_of(const float* __restrict values, const float* __restrict used) {
  float sums[kLanes] = {};
  uint32_t counts[kLanes] = {};
  for (size_t i = 0; i < kChunk; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += std::fabs(values[i + lane]);
      counts[lane] -= mask_of(used[i + lane]);
    }
  double sum = 0, count = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    sum += double(sums[lane]);
    count += counts[lane];
  }
  return count > 0 ? float(sum / count) : 0;
}

REMUDA_VECTOR_CLONES void take_signs(float* __restrict values, const float* __restrict used, Packed* __restrict to) {
  const auto scale = std::bit_cast<uint32_t>(to->scale);
  for (size_t word = 0; word < kWords; ++word) {
    float* const of_word = values + word * kLanes;
    const float* const used_here = used + word * kLanes;
    uint32_t negative = 0;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t sign = std::bit_cast<uint32_t>(of_word[lane]) & kSign;
      negative |= (sign >> 31) << lane;
      of_word[lane] -= std::bit_cast<float>((scale | sign) & mask_of(used_here[lane]));
    }
    to->negative[word] = negative;
  }
}

template <bool kAdds>
REMUDA_VECTOR_CLONES void give_signs(const Packed* __restrict from, const float* __restrict used,
                                     float* __restrict values) {
  const auto scale = std::bit_cast<uint32_t>(from->scale);
  for (size_t word = 0; word < kWords; ++word) {
    const uint32_t negative = from->negative[word];
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const size_t i = word * kLanes + lane;
      const uint32_t sign = ((negative >> lane) & 1) << 31;
      const float value = std::bit_cast<float>((scale | sign) & mask_of(used[i]));
      if constexpr (kAdds)
        values[i] += value;
      else
        values[i] = value;
    }
  }
}

/// Calls `work(values, used, chunk)` for each chunk; for one that is not whole, on a copy that is, with nothing behind.
template <typename Work>
void for_chunks(std::span<float> values, std::span<const float> used, Work work) {
  const size_t whole = values.size() / kChunk;
  for (size_t chunk = 0; chunk < whole; ++chunk)
    work(values.data() + chunk * kChunk, used.data() + chunk * kChunk, chunk);
  const std::span<float> rest = values.subspan(whole * kChunk);
  if (rest.empty()) return;
  float values_there[kChunk] = {}, used_there[kChunk] = {};
  std::ranges::copy(rest, values_there);
  std::ranges::copy(used.subspan(whole * kChunk, rest.size()), used_there);
  work(values_there, used_there, whole);
  std::copy_n(values_there, rest.size(), rest.begin());
}

template <bool kAdds>
void give(std::span<const std::byte> packed, std::span<const float> used, std::span<float> values) {
  const auto* const chunks = reinterpret_cast<const Packed*>(packed.data());
  for_chunks(values, used, [&](float* to, const float* used_here, size_t chunk) {
    give_signs<kAdds>(chunks + chunk, used_here, to);
  });
}

}  // namespace

void pack(std::span<float> values, std::span<const float> used, std::span<std::byte> packed) {
  auto* const chunks = reinterpret_cast<Packed*>(packed.data());
  for_chunks(values, used, [&](float* from, const float* used_here, size_t chunk) {
    chunks[chunk].scale = mean_of(from, used_here);
    take_signs(from, used_here, chunks + chunk);
  });
}

void unpack(std::span<const std::byte> packed, std::span<const float> used, std::span<float> values) {
  give<false>(packed, used, values);
}

void add_unpacked(std::span<const std::byte> packed, std::span<const float> used, std::span<float> values) {
  give<true>(packed, used, values);
}

}  // namespace remuda::compress
