// Tests only: small models of every kind with a batch each, the same in every rank and every run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/loss.h"
#include "train/model/make_model.h"
#include "train/samples.h"

namespace remuda::train::testing {

struct ModelCase {
  std::string name;
  job::ModelSpec spec;
  ModelInput input;
  int padding = -1;
  job::Recompute recompute = job::Recompute::none;
  int recompute_blocks = 0;
};

inline void PrintTo(const ModelCase& one, std::ostream* out) { *out << one.name; }

/// mlp, resnet, and gpt whose targets are partly padding, unevenly from sample to sample; gpt also with recomputed
/// blocks.
inline std::vector<ModelCase> model_cases() {
  ModelCase mlp{.name = "mlp", .spec = {.name = "mlp", .hidden = {24, 16}}, .input = {1, 8, 8, 5, 0}};
  ModelCase resnet{.name = "resnet", .spec = {.name = "resnet", .width = 8, .depth = 1}, .input = {1, 12, 12, 5, 0}};
  ModelCase gpt{.name = "gpt",
                .spec = {.name = "gpt", .width = 16, .depth = 2, .heads = 2, .vocabulary = 23},
                .input = {0, 0, 0, 0, 12},
                .padding = 0};
  ModelCase recomputed = gpt;
  recomputed.name = "gpt_recomputed";
  recomputed.recompute = job::Recompute::blocks;
  return {mlp, resnet, gpt, recomputed};
}

/// Not thread-safe: draws from torch's default generator.
inline std::unique_ptr<Model> make_seeded(const ModelCase& model_case, torch::ScalarType type) {
  torch::manual_seed(7);
  auto model = make_model(model_case.spec, model_case.input,
                          {.recompute = model_case.recompute, .recompute_blocks = model_case.recompute_blocks})
                   .value();
  model->to(type);
  model->set_training(true);
  return model;
}

inline Batch make_batch(const ModelCase& model_case, int64_t samples, int64_t seed, torch::ScalarType type) {
  torch::manual_seed(uint64_t(seed));
  const auto& input = model_case.input;
  if (input.context == 0)
    return {torch::randn({samples, input.channels, input.height, input.width}).to(type),
            torch::randint(input.classes, {samples}, torch::kLong)};
  const auto tokens = torch::randint(1, model_case.spec.vocabulary, {samples, input.context}, torch::kLong);
  auto targets = torch::randint(1, model_case.spec.vocabulary, {samples, input.context}, torch::kLong);
  for (int64_t i = 0; i < samples; ++i) targets[i].narrow(0, 0, (i * 5) % input.context).fill_(model_case.padding);
  return {tokens, targets};
}

inline Batch narrow(const Batch& batch, int64_t begin, int64_t size) {
  return {batch.input.narrow(0, begin, size), batch.target.narrow(0, begin, size)};
}

inline LossSum case_loss(const ModelCase& model_case, Model& model, const Batch& batch) {
  return loss_sum(model_case.spec.loss, model.forward(batch.input), batch.target, model_case.padding);
}

/// The first sample's backward pass, which GradientReducer::create() runs once.
inline std::function<void()> trial(const ModelCase& model_case, Model& model, const Batch& batch) {
  return [&] { case_loss(model_case, model, narrow(batch, 0, 1)).sum.backward(); };
}

/// Copies, in the order of the parameters.
inline std::vector<torch::Tensor> gradients(Model& model) {
  std::vector<torch::Tensor> copies;
  for (const auto& parameter : model.parameters()) copies.push_back(parameter.grad().clone());
  return copies;
}

/// |a - b| / |b| over all tensors together.
inline double relative_error(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]).to(torch::kDouble).square().sum().item<double>();
    size += b[i].to(torch::kDouble).square().sum().item<double>();
  }
  return std::sqrt(difference / size);
}

}  // namespace remuda::train::testing
