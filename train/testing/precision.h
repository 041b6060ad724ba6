// Tests only: whether tests of bf16 can run on this machine's CPU, with whose kernels the stand-in computes, too.
#pragma once

#include "train/precision.h"

namespace remuda::train::testing {

constexpr const char* kNoBf16 = "libtorch " TORCH_VERSION " adds up in bfloat16 on this CPU, so training does not";

/// Whether a gradient over 4096 samples of one is 4096, and not 256, where bfloat16 rounds one more away.
inline bool cpu_has_bf16() {
  constexpr int kSamples = 4096;
  const auto weight = torch::ones({8, 8}, torch::requires_grad());
  const auto scores = [&] {
    const Autocast autocast(torch::kCPU, torch::kBFloat16);
    return torch::linear(torch::ones({kSamples, 8}), weight);
  }();
  scores.to(torch::kFloat).sum().backward();
  return weight.grad().eq(kSamples).all().item<bool>();
}

}  // namespace remuda::train::testing
