#include "train/pace.h"

namespace remuda::train {

void Pace::start() {
  running_ = true;
  start_s_ = clock_.now_s();
  slept_s_ = left_out_s_ = 0;
}

void Pace::stretch() {
  if (!running_ || slowdown_ <= 1) return;
  const double now = clock_.now_s();
  const double busy = now - start_s_ - slept_s_ - left_out_s_;
  const double owed = (slowdown_ - 1) * busy - slept_s_;
  if (owed <= 0) return;
  clock_.sleep_s(owed);
  slept_s_ += clock_.now_s() - now;
}

double Pace::stop() {
  stretch();
  running_ = false;
  return clock_.now_s() - start_s_ - left_out_s_;
}

}  // namespace remuda::train
