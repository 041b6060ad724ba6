#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace remuda::train {

UpdateRule rule_of(const job::TrainSpec& spec) {
  if (spec.optimizer == job::Optimizer::adamw) return {.kind = UpdateRule::Kind::adamw};
  return {.kind = UpdateRule::Kind::sgd, .momentum = spec.momentum};
}

UpdatesOn updates_on(const job::MemorySpec& spec) {
  return spec.optimizer == job::UpdatesOn::host ? UpdatesOn::host : UpdatesOn::device;
}

std::vector<size_t> groups_of(const job::TrainSpec& spec, const std::vector<torch::Tensor>& parameters) {
  std::vector<size_t> groups;
  for (const auto& parameter : parameters)
    groups.push_back(spec.decay == job::Decay::matrices && parameter.dim() < 2 ? 1 : 0);
  return groups;
}

int steps_of(const job::TrainSpec& spec, uint64_t samples) {
  constexpr uint64_t kMost = std::numeric_limits<int>::max();
  const auto batch = uint64_t(spec.global_batch);
  const uint64_t per_epoch = std::min(kMost, (samples + batch - 1) / batch);
  const uint64_t all = std::min(kMost, per_epoch * uint64_t(spec.epochs));
  return spec.max_steps > 0 ? std::min(int(all), spec.max_steps) : int(all);
}

/// DeepSpeed's 1-bit Adam begins after 15 to 25 % of a run, PyTorch's powerSGD_hook after some 10 %.
int warm_up_of(const job::TrainSpec& spec, job::Compression compression, int steps) {
  const int part = compression == job::Compression::powersgd ? 10 : 5;
  return spec.compression_after > 0 ? spec.compression_after : std::max(1, steps / part);
}

double learning_rate(const job::TrainSpec& spec, int step, int steps) {
  if (spec.schedule == job::Schedule::constant) return spec.learning_rate;
  return spec.learning_rate * (1 + std::cos(std::numbers::pi * step / steps)) / 2;
}

std::vector<GroupSettings> settings_of(const job::TrainSpec& spec, int step, int steps) {
  const double rate = learning_rate(spec, step, steps);
  return {{rate, spec.weight_decay}, {rate, 0}};
}

}  // namespace remuda::train
