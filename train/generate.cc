#include "train/generate.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <vector>

namespace remuda::train {
namespace {

/// Uniform in [0, 1). std::uniform_real_distribution may differ between standard libraries.
double draw(std::mt19937_64& random) { return double(random() >> 11) * 0x1p-53; }

/// The scores of the token that follows the last one.
std::vector<float> next_scores(Model& model, std::span<const int64_t> window, torch::Device device) {
  const auto input = torch::tensor(at::ArrayRef<int64_t>(window.data(), window.size()), torch::kLong).unsqueeze(0);
  const auto scores =
      model.forward(input.to(device)).select(1, -1).flatten().to(torch::kCPU, torch::kFloat).contiguous();
  return {scores.data_ptr<float>(), scores.data_ptr<float>() + scores.numel()};
}

}  // namespace

int draw_token(std::span<const float> scores, double temperature, int top_k, std::mt19937_64& random) {
  std::vector<int> tokens(scores.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const bool all = top_k == 0 || size_t(top_k) >= tokens.size();
  const size_t kept = temperature == 0 ? 1 : all ? tokens.size() : size_t(top_k);
  std::ranges::partial_sort(tokens, tokens.begin() + long(kept),
                            [&](int a, int b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  if (kept == 1) return tokens[0];
  std::vector<double> sums(kept);
  double sum = 0;
  for (size_t i = 0; i < kept; ++i)
    sums[i] = sum += std::exp((double(scores[tokens[i]]) - double(scores[tokens[0]])) / temperature);
  const auto found = std::ranges::upper_bound(sums, draw(random) * sum);
  return tokens[std::min<size_t>(size_t(found - sums.begin()), kept - 1)];
}

Result<std::string> generate(Model& model, const job::OutputSpec& spec, int context, uint64_t seed,
                             const std::function<void()>& after_token) {
  const torch::NoGradGuard no_grad;
  model.set_training(false);
  const torch::Device device = model.parameters().at(0).device();
  std::mt19937_64 random(seed);
  std::vector<int64_t> tokens;
  for (const unsigned char byte : spec.prompt.empty() ? std::string("\n") : spec.prompt) tokens.push_back(byte);
  std::string text;
  try {
    for (int i = 0; i < spec.sample; ++i) {
      const auto window = std::span(tokens).last(std::min(tokens.size(), size_t(context)));
      tokens.push_back(draw_token(next_scores(model, window, device), spec.temperature, spec.top_k, random));
      text += static_cast<char>(tokens.back());
      after_token();
    }
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    return failed(fmt::format("the device of rank 0 ran out of memory after {} of {} bytes", text.size(), spec.sample));
  }
  return text;
}

}  // namespace remuda::train
