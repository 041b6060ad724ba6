#include "comm/reduce.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/vector_clones.h"

namespace remuda::comm {
namespace {

constexpr size_t kBlockBytes = 8 << 10;  // the running sum stays in the first-level cache

// Values as they are added up.
template <typename T>
T widened(T value) {
  return value;
}
float widened(Float16 value) { return static_cast<float>(std::bit_cast<_Float16>(value.bits)); }
float widened(BFloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }

template <typename T>
REMUDA_VECTOR_CLONES void add_both(T* __restrict a, T* __restrict b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const T sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

template <typename In, typename Sum>
REMUDA_VECTOR_CLONES void take_over(Sum* __restrict sum, const In* __restrict in, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] = widened(in[i]);
}

template <typename In, typename Sum>
REMUDA_VECTOR_CLONES void add_to(Sum* __restrict sum, const In* __restrict in, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] += widened(in[i]);
}

template <typename In, typename Sum = In>
void add_all(std::span<const std::byte* const> in, std::span<std::byte* const> out, size_t count) {
  if constexpr (std::is_same_v<In, Sum>)
    if (in.size() == 2 && out.size() == 2 && in[0] == out[0] && in[1] == out[1])
      return add_both(reinterpret_cast<Sum*>(out[0]), reinterpret_cast<Sum*>(out[1]), count);
  if (in.empty()) {
    for (std::byte* to : out) std::memset(to, 0, count * sizeof(Sum));
    return;
  }
  if (in.size() == 1 && out.size() == 1 && in[0] == out[0]) return;
  constexpr size_t kBlock = kBlockBytes / sizeof(Sum);
  alignas(kCacheLine) Sum sum[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t length = std::min(kBlock, count - begin);
    const auto of = [&](const std::byte* values) { return reinterpret_cast<const In*>(values) + begin; };
    take_over(sum, of(in[0]), length);
    for (const std::byte* more : in.subspan(1)) add_to(sum, of(more), length);
    for (std::byte* to : out) std::memcpy(to + begin * sizeof(Sum), sum, length * sizeof(Sum));
  }
}

}  // namespace

void add_up(Element type, std::span<const std::byte* const> in, std::span<std::byte* const> out, size_t count) {
  switch (type) {
    case Element::bytes:
      break;
    case Element::int64:
      return add_all<int64_t>(in, out, count);
    case Element::float64:
      return add_all<double>(in, out, count);
    case Element::float32:
      return add_all<float>(in, out, count);
    case Element::float16:
      return add_all<Float16, float>(in, out, count);
    case Element::bfloat16:
      return add_all<BFloat16, float>(in, out, count);
  }
  REMUDA_CHECK(false, "bytes are not added up");
}

}  // namespace remuda::comm
