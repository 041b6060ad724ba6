#include "comm/reduce.h"

#include <algorithm>
#include <cstring>

#include "comm/parts.h"

// One copy of each loop per vector width, chosen when the program starts. Not with sanitizers, which run before that
// choice can be made, nor with clang, which makes no such copies of templates.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define REMUDA_VECTOR_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define REMUDA_VECTOR_CLONES
#endif

namespace remuda::comm {
namespace {

constexpr size_t kBlockBytes = 8 << 10;  // the running sum stays in the first-level cache

template <typename T>
REMUDA_VECTOR_CLONES void add_both(T* __restrict a, T* __restrict b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const T sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

template <typename T>
REMUDA_VECTOR_CLONES void add_to(T* __restrict sum, const T* __restrict in, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] += in[i];
}

}  // namespace

template <typename T>
void sum_in_rank_order(std::span<const T* const> in, std::span<T* const> out, size_t count) {
  if (in.size() == 2 && out.size() == 2 && in[0] == out[0] && in[1] == out[1]) return add_both(out[0], out[1], count);
  constexpr size_t kBlock = kBlockBytes / sizeof(T);
  alignas(kCacheLine) T sum[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t length = std::min(kBlock, count - begin);
    std::memcpy(sum, in[0] + begin, length * sizeof(T));
    for (const T* more : in.subspan(1)) add_to(sum, more + begin, length);
    for (T* to : out) std::memcpy(to + begin, sum, length * sizeof(T));
  }
}

template void sum_in_rank_order(std::span<const float* const>, std::span<float* const>, size_t);
template void sum_in_rank_order(std::span<const double* const>, std::span<double* const>, size_t);

}  // namespace remuda::comm
