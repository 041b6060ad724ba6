#include "compress/choose.h"

#include <algorithm>
#include <fmt/format.h>

namespace remuda::compress {
namespace {

constexpr double kTolerance = 1.1;
constexpr double kBackward = 2.0 / 3;
// Seconds that a value takes a leader's core beyond an uncompressed step, as measured with 22 M of them on a busy AMD
// EPYC.
constexpr double kOneBit_s = 6e-9;
constexpr double kPowerSgd_s = 1.5e-9;  // and for each vector of a side
constexpr double kBits = 1 + 32.0 / 2048;

/// Half of an all_reduce adds up, half of it hands out.
double step_with(const Exchange& exchange, double gradient_bytes) {
  const double half_s = exchange.values * exchange.seconds_per_byte / 2;
  const double gradients_s = std::max(0.0, gradient_bytes * half_s - kBackward * exchange.compute_s);
  return exchange.compute_s + gradients_s + exchange.value_bytes * half_s;
}

}  // namespace

const char* to_string(Packing packing) {
  switch (packing) {
    case Packing::bf16:
      return "gradients in bf16";
    case Packing::powersgd:
      return "powersgd";
    case Packing::one_bit:
      return "1-bit";
    default:
      return "none";
  }
}

std::vector<Prediction> predict(const Exchange& exchange) {
  std::vector<Prediction> all{{Packing::none, step_with(exchange, exchange.gradient_bytes)}};
  const auto packed = [&](double bytes, double s_per_value) {
    return exchange.compute_s + bytes * exchange.seconds_per_byte + exchange.values * s_per_value;
  };
  if (exchange.may_round && exchange.gradient_bytes > 2) all.push_back({Packing::bf16, step_with(exchange, 2)});
  if (exchange.may_powersgd)
    all.push_back({Packing::powersgd, packed(4 * exchange.low_rank_values, exchange.rank * kPowerSgd_s)});
  if (exchange.may_one_bit) all.push_back({Packing::one_bit, packed(exchange.values * kBits / 8, kOneBit_s)});
  return all;
}

Packing choose(const std::vector<Prediction>& predictions) {
  const double shortest = std::ranges::min(predictions, {}, &Prediction::step_s).step_s;
  return std::ranges::find_if(predictions, [&](const Prediction& one) { return one.step_s <= kTolerance * shortest; })
      ->packing;
}

std::string reason(const Exchange& exchange, const std::vector<Prediction>& predictions) {
  std::string steps;
  for (const Prediction& one : predictions)
    steps += fmt::format("{}{:.3g} s with {}", steps.empty() ? "" : ", ", one.step_s, to_string(one.packing));
  return fmt::format(
      "ranks add up {:.3g} MB/s, and a step computes {:.3g} s and has {:.3g} MB of parameters: it would take {}",
      1e-6 / exchange.seconds_per_byte, exchange.compute_s, 4e-6 * exchange.values, steps);
}

}  // namespace remuda::compress
