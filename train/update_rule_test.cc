// The update rules against libtorch's own optimizers, and the division of the work among owners against one of them.
#include "train/update_rule.h"

#include <gtest/gtest.h>

namespace remuda::train {
namespace {

using Kind = UpdateRule::Kind;

struct RuleCase {
  const char* name;
  UpdateRule rule;
  GroupSettings settings;
};

void PrintTo(const RuleCase& one, std::ostream* out) { *out << one.name; }

const std::vector<RuleCase> kCases{
    {"sgd", {}, {0.1, 0}},
    {"sgd_decay", {}, {0.1, 0.05}},
    {"momentum", {.momentum = 0.9}, {0.1, 0}},
    {"momentum_decay", {.momentum = 0.9}, {0.1, 0.05}},
    {"adamw", {.kind = Kind::adamw}, {0.01, 0}},
    {"adamw_decay", {.kind = Kind::adamw}, {0.01, 0.1}},
    {"adamw_betas", {.kind = Kind::adamw, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-4}, {0.01, 0.1}},
};

std::unique_ptr<torch::optim::Optimizer> optimizer_of(const RuleCase& c, const torch::Tensor& values) {
  namespace optim = torch::optim;
  const std::vector<torch::Tensor> all{values};
  const double rate = c.settings.learning_rate, decay = c.settings.weight_decay;
  if (c.rule.kind == Kind::sgd)
    return std::make_unique<optim::SGD>(all, optim::SGDOptions(rate).momentum(c.rule.momentum).weight_decay(decay));
  return std::make_unique<optim::AdamW>(
      all, optim::AdamWOptions(rate).betas({c.rule.beta1, c.rule.beta2}).eps(c.rule.epsilon).weight_decay(decay));
}

class Rules : public ::testing::TestWithParam<RuleCase> {};

INSTANTIATE_TEST_SUITE_P(All, Rules, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

// float64: the formulas are the same, the order of operations is not; 1e-10 over 30 steps.
TEST_P(Rules, DoWhatLibtorchsOptimizersDo) {
  constexpr double kFactor = 0.25;
  torch::manual_seed(1);
  auto expected = torch::randn({1000}, torch::dtype(torch::kDouble)).set_requires_grad(true);
  expected.mutable_grad() = torch::zeros({1000}, torch::kDouble);
  const auto optimizer = optimizer_of(GetParam(), expected);

  const auto values = expected.detach().clone();
  UpdateRanges ranges;
  if (GetParam().rule.needs_scratch()) ranges.scratch = torch::empty({1000}, torch::kDouble);
  ranges.values = {values.narrow(0, 0, 300), values.narrow(0, 300, 700)};
  ranges.states.resize(GetParam().rule.states());
  for (auto& state : ranges.states) state = {torch::zeros({300}, torch::kDouble), torch::zeros({700}, torch::kDouble)};
  for (int64_t step = 1; step <= 30; ++step) {
    const auto gradient = torch::randn({1000}, torch::kDouble);
    expected.mutable_grad().copy_(gradient * kFactor);
    optimizer->step();
    ranges.gradients = {gradient.narrow(0, 0, 300), gradient.narrow(0, 300, 700)};
    update(GetParam().rule, GetParam().settings, step, kFactor, ranges);
    ASSERT_LT((values - expected.detach()).abs().max().item<double>(), 1e-10) << "step " << step;
  }
}

}  // namespace
}  // namespace remuda::train
