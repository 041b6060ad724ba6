#include "train/step_tail.h"

#include <cmath>

#include "base/check.h"

namespace remuda::train {
namespace {
constexpr double kLow = 4096;
}

unsigned StepTail::any_status() const {
  unsigned all = 0;
  for (const unsigned bits : status) all |= bits;
  return all;
}

int StepTail::first_with(StepStatus bit) const {
  for (size_t rank = 0; rank < status.size(); ++rank)
    if (status[rank] & bit) return int(rank);
  return -1;
}

template <typename T>
void write(const StepTail& tail, std::span<T> out) {
  const size_t ranks = tail.status.size();
  REMUDA_CHECK(out.size() == StepTail::elements(int(ranks)), "the tail has a slot per rank");
  const double high = std::floor(tail.weight / kLow);
  out[0] = T(high);
  out[1] = T(tail.weight - high * kLow);
  out[2] = T(tail.loss_sum);
  for (size_t rank = 0; rank < ranks; ++rank) {
    T* slot = &out[3 + 4 * rank];
    slot[0] = T(tail.status[rank]);
    slot[1] = T(tail.compute_s[rank]);
    slot[2] = T(tail.wait_s[rank]);
    slot[3] = T(tail.next_shares[rank]);
  }
}

template <typename T>
StepTail read(std::span<const T> in, int ranks) {
  REMUDA_CHECK(in.size() == StepTail::elements(ranks), "the tail has a slot per rank");
  StepTail tail(ranks);
  tail.weight = double(in[0]) * kLow + double(in[1]);
  tail.loss_sum = double(in[2]);
  for (int rank = 0; rank < ranks; ++rank) {
    const T* slot = &in[3 + 4 * rank];
    tail.status[rank] = unsigned(slot[0]);
    tail.compute_s[rank] = double(slot[1]);
    tail.wait_s[rank] = double(slot[2]);
    tail.next_shares[rank] = int(slot[3]);
  }
  return tail;
}

template void write(const StepTail&, std::span<float>);
template void write(const StepTail&, std::span<double>);
template StepTail read(std::span<const float>, int);
template StepTail read(std::span<const double>, int);

}  // namespace remuda::train
