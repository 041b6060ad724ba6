#include "train/measure/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "measure/repeat.h"
#include "train/torch_compat.h"

namespace remuda::train {
namespace {

constexpr int64_t kSmallest = 128;

constexpr std::array kPrecisions{std::pair{at::kDouble, "float64"}, std::pair{at::kFloat, "float32"},
                                 std::pair{at::kBFloat16, "bfloat16"}, std::pair{at::kHalf, "float16"}};

struct Product {
  at::Tensor a, b, result;

  Product(int64_t n, const at::TensorOptions& options)
      : a(torch::rand({n, n}, options.dtype(at::kFloat)).to(options.dtype())),
        b(a.t().contiguous()),
        result(torch::empty({n, n}, options)) {}

  double time(const std::function<void()>& wait) {
    return measure::time_s([&] {
      at::mm_out(result, a, b);
      wait();
    });
  }
};

/// 10^12 operations per second.
double rate(const at::TensorOptions& tensors, const GemmOptions& options) {
  for (int64_t n = kSmallest;; n *= 2) {
    Product product(n, tensors);
    product.time(options.wait);
    const double once_s = std::min(product.time(options.wait), product.time(options.wait));
    if (once_s < options.shortest_s && 2 * n <= options.largest) continue;
    const double each_s = measure::median_s(options.seconds, [&] { return product.time(options.wait); });
    return 2 * std::pow(static_cast<double>(n), 3) / each_s / 1e12;
  }
}

/// Uses smaller matrices where memory is short; nothing when the device does not support this product, or has no memory
/// for it.
std::optional<double> try_rate(const at::TensorOptions& tensors, GemmOptions options) {
  for (; options.largest >= kSmallest; options.largest /= 2) {
    try {
      return rate(tensors, options);
    } catch (const c10::Error& error) {
      if (!is_out_of_memory(error)) return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<MeasuredGemm> gemm_rates(const at::Device& device, const GemmOptions& options) {
  const torch::NoGradGuard no_gradients;
  std::vector<MeasuredGemm> rates;
  for (const auto& [type, name] : kPrecisions)
    if (const auto tflops = try_rate(at::TensorOptions().device(device).dtype(type), options))
      rates.push_back({name, *tflops});
  return rates;
}

}  // namespace remuda::train
