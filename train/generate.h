// Generate: text from a model of bytes, one byte after the other.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string>

#include "base/result.h"
#include "job/train_job.h"
#include "train/model/model.h"

namespace remuda::train {

/// Draws the next token by its scores (logits): among the `top_k` highest (0: all), each with a probability
/// proportional to exp(score / temperature); temperature 0 takes the highest. The same on every machine for the same
/// scores and state of `random`.
int draw_token(std::span<const float> scores, double temperature, int top_k, std::mt19937_64& random);

/// `spec.sample` bytes that continue `spec.prompt`, without the prompt; the same for the same model and seed. The model
/// sees the last `context` bytes. `after_token` is called after each. Leaves the model set for evaluation. An error
/// where the device has no room for it.
Result<std::string> generate(Model& model, const job::OutputSpec& spec, int context, uint64_t seed,
                             const std::function<void()>& after_token);

}  // namespace remuda::train
