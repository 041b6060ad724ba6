#include "balance/unrest.h"

namespace remuda::balance {
namespace {

constexpr double kMuchNoise = 0.12;
constexpr size_t kManyShifts = 3;  // of one device,
constexpr int kShiftSteps = 100;   // within so many steps
constexpr int kLasts = 200;        // steps after the last sign

}  // namespace

void Unrest::step() {
  ++now_;
  if (left_ > 0) --left_;
}

void Unrest::shifted(int device) {
  auto& shifts = shifts_.at(device);
  shifts.push_back(now_);
  while (now_ - shifts.front() >= kShiftSteps) shifts.pop_front();
  if (shifts.size() >= kManyShifts) left_ = kLasts;
}

void Unrest::scattered(double noise) {
  if (noise > kMuchNoise) left_ = kLasts;
}

}  // namespace remuda::balance
