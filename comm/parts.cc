#include "comm/parts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "comm/digest.h"

namespace remuda::comm {

uint32_t Parts::digest() const { return digest_of(ends_); }

Parts Parts::in_bytes(size_t element_bytes) const {
  std::vector<size_t> ends = ends_;
  for (size_t& end : ends) end *= element_bytes;
  return Parts(std::move(ends));
}

bool Parts::are_equal() const {
  for (int rank = 1; rank < ranks(); ++rank)
    if (of(rank).size() != of(0).size()) return false;
  return true;
}

Parts parts_by(std::span<const double> weights, size_t count, size_t element_bytes) {
  const size_t per_line = kCacheLine / element_bytes;
  const size_t lines = (count + per_line - 1) / per_line;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<size_t> ends;
  double sum = 0;
  for (const double weight : weights) {
    sum += weight;
    ends.push_back(
        std::min(count, static_cast<size_t>(std::llround(static_cast<double>(lines) * sum / total)) * per_line));
  }
  ends.back() = count;
  return Parts(std::move(ends));
}

Parts even_parts(int ranks, size_t count, size_t element_bytes) {
  return parts_by(std::vector<double>(static_cast<size_t>(ranks), 1.0), count, element_bytes);
}

}  // namespace remuda::comm
