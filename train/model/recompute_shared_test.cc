// Blocks that are recomputed, and say which parameters they use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/model/recompute.h"

namespace remuda::train {
namespace {

/// A gradient to begin with, and three more of one weight: the order of the additions decides the bits.
torch::Tensor gradient_of_shared(bool recompute) {
  const auto weight = torch::arange(64).sin().view({8, 8}).requires_grad_();
  const Block block = [weight](const torch::Tensor& x) { return torch::tanh(torch::matmul(x, weight)); };
  for (int pass = 0; pass < 2; ++pass) {
    auto x = torch::matmul(torch::linspace(-1, 1, 32).view({4, 8}), weight);
    for (int i = 0; i < 2; ++i)  // under two names, as a tied weight
      x = recompute ? recomputed(block, x, {}, {weight, weight}) : block(x);
    torch::matmul(x, weight).square().sum().backward();
  }
  return weight.grad();
}

TEST(Recompute, AWeightSharedWithTheRestOfTheGraphHasTheSameBits) {
  const auto kept = gradient_of_shared(false), again = gradient_of_shared(true);
  EXPECT_TRUE(again.equal(kept)) << (again - kept).abs().max();
}

TEST(Recompute, AParameterThatIsNotTheBlocksOwnIsRefused) {
  const auto own = torch::ones({3}, torch::requires_grad()), strange = torch::ones({2, 3}, torch::requires_grad());
  const Block block = [&](const torch::Tensor& x) { return x * own * strange; };
  const auto y = recomputed(block, torch::ones({3}), {}, {own});
  try {
    y.sum().backward();
    ADD_FAILURE() << "lost a gradient";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("a parameter of Float of shape [2, 3] that is not among its own"));
  }
}

TEST(Recompute, ABlockOfABlockMayHaveItsOwnParameters) {
  const auto outer = torch::full({3}, 2.0, torch::requires_grad()),
             inner = torch::full({3}, 3.0, torch::requires_grad());
  const Block within = [&](const torch::Tensor& x) { return x * inner; };
  const Block block = [&](const torch::Tensor& x) { return recomputed(within, x, {}, {inner}) * outer; };
  recomputed(block, torch::ones({3}), {}, {outer, inner}).sum().backward();
  EXPECT_TRUE(outer.grad().eq(3).all().item<bool>());
  EXPECT_TRUE(inner.grad().eq(2).all().item<bool>());
}

TEST(Recompute, ParametersThatNeedNoGradientMayBeNamed) {
  const auto frozen = torch::full({3}, 2.0), unused = torch::ones({3}, torch::requires_grad());
  const auto x = torch::ones({3}, torch::requires_grad());
  const Block block = [&](const torch::Tensor& in) { return in * frozen; };
  recomputed(block, x, {}, {frozen, unused}).sum().backward();
  EXPECT_TRUE(x.grad().eq(2).all().item<bool>());
  EXPECT_FALSE(unused.grad().defined());
}

}  // namespace
}  // namespace remuda::train
