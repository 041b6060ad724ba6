#include "compress/choose.h"

#include <algorithm>
#include <fmt/format.h>

namespace remuda::compress {
namespace {

constexpr double kTolerance = 1.1;

/// Three digits, or all before the point.
std::string plain(double value) {
  return value < 100 ? fmt::format("{:.3g}", value < 1e-3 ? 0 : value) : fmt::format("{:.0f}", value);
}

/// Half of an all_reduce adds up, half of it hands out.
double rounded_step_s(const Exchange& exchange) {
  const double saved_s = (exchange.gradient_bytes - 2) * exchange.seconds_per_byte / 2 - exchange.rounding_s_per_value;
  return exchange.step_s - std::min(exchange.gradient_wait_s, exchange.values * saved_s);
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
  std::vector<Prediction> all{{Packing::none, exchange.step_s}};
  if (exchange.may_round && exchange.gradient_bytes > 2) all.push_back({Packing::bf16, rounded_step_s(exchange)});
  const auto packed = [&](double seconds) { return exchange.data_s + exchange.pass_s + seconds; };
  if (exchange.powersgd_s) all.push_back({Packing::powersgd, packed(*exchange.powersgd_s)});
  if (exchange.one_bit_s) all.push_back({Packing::one_bit, packed(*exchange.one_bit_s)});
  return all;
}

Packing choose(const std::vector<Prediction>& predictions) {
  const double shortest = std::ranges::min(predictions, {}, &Prediction::step_s).step_s;
  return std::ranges::find_if(predictions, [&](const Prediction& one) { return one.step_s <= kTolerance * shortest; })
      ->packing;
}

std::string reason(const Exchange& exchange, const std::vector<Prediction>& predictions) {
  std::string others;
  for (const Prediction& one : predictions)
    if (one.packing != Packing::none)
      others += fmt::format("{}{} with {}", others.empty() ? "; it is expected to take " : ", ",
                            seconds_text(one.step_s), to_string(one.packing));
  return fmt::format(
      "a step took {}, {} of it waiting for the exchange of {} MB of gradients, which hosts add up at {} MB/s{}",
      seconds_text(exchange.step_s), seconds_text(exchange.wait_s),
      plain(1e-6 * exchange.values * exchange.gradient_bytes), plain(1e-6 / exchange.seconds_per_byte), others);
}

std::string seconds_text(double seconds) {
  return seconds < 0.1 ? plain(1e3 * seconds) + " ms" : plain(seconds) + " s";
}

}  // namespace remuda::compress
