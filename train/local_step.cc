#include "train/local_step.h"

namespace remuda::train {

LossSum LocalStep::forward(std::span<const uint64_t> indices) {
  const Batch batch = samples_.gather(indices, torch::kFloat);
  return loss_sum(loss_, model_.forward(batch.input), batch.target, padding_);
}

double LocalStep::run(std::span<const uint64_t> indices, StepTail tail, GradientReducer& reducer) {
  pace_.start();
  bool begun = false;
  try {
    LossSum loss;
    if (!indices.empty()) {
      loss = forward(indices);
      tail.weight = loss.weight;
      tail.loss_sum = loss.sum.item<double>();
    }
    reducer.begin(tail);
    begun = true;
    if (loss.sum.defined()) loss.sum.backward();
  } catch (const c10::Error& error) {
    if (!is_out_of_memory(error)) throw;
    if (!begun) reducer.begin(tail);
    reducer.give_up(kOutOfMemory);
    failed_.clear();
  }
  return pace_.stop();
}

bool LocalStep::run_alone(std::span<const uint64_t> indices) {
  try {
    forward(indices).sum.backward();
    return true;
  } catch (const c10::Error& error) {
    if (!is_out_of_memory(error)) throw;
    failed_.clear();
    return false;
  }
}

}  // namespace remuda::train
