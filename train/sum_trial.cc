#include "train/sum_trial.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace remuda::train {
namespace {

/// The last bit that bfloat16 has of values in [1, 2).
constexpr int kUnits = 128;
/// A column, in units.
std::vector<int> column_of(uint32_t seed) {
  std::vector<int> units(kSumTrialRows);
  uint32_t state = seed;
  for (size_t i = 0; i < units.size(); ++i) {
    state = 1664525 * state + 1013904223;  // Numerical Recipes' generator
    const int size = kUnits + int(state >> 25);
    units[i] = i < units.size() / 2 ? size : -size;
  }
  int left = kUnits - std::accumulate(units.begin(), units.end(), 0);
  for (size_t i = units.size() - 1; left != 0; i = std::max(i, units.size() / 2 + 1) - 1) {
    const int changed = std::clamp(units[i] + left, 1 - 2 * kUnits, -kUnits);
    left -= changed - units[i];
    units[i] = changed;
  }
  return units;
}

}  // namespace

torch::Tensor sum_trial_values() {
  std::vector<torch::Tensor> columns;
  for (uint32_t seed = 1; seed <= kSumTrialColumns; ++seed) columns.push_back(torch::tensor(column_of(seed)));
  return torch::stack(columns, 1).to(torch::kFloat).div(kUnits);
}

bool adds_up_in_float32(torch::Device device, torch::ScalarType type) {
  const auto options = torch::TensorOptions(device).dtype(type);
  const auto ones = torch::ones({kSumTrialRows, kSumTrialColumns}, options);
  return torch::mm(ones.t(), sum_trial_values().to(options)).eq(1).all().item<bool>();
}

}  // namespace remuda::train
