// Choose: what hosts had best send each other, from what steps took so far and what a trial of each took. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace remuda::compress {

/// What hosts send each other, in order of how much it changes what is learned.
enum class Packing { none, bf16, powersgd, one_bit };
/// As the keys of a job call it: "gradients in bf16" for bf16.
const char* to_string(Packing packing);

/// All of it measured: steps are those of the warm-up, at the speed and with the other load that they had.
struct Exchange {
  double step_s = 0;           ///< of a step as it is
  double wait_s = 0;           ///< of that, until gradients and parameters were exchanged, beyond the computing
  double gradient_wait_s = 0;  ///< and of that, for the gradients
  double data_s = 0;           ///< of a step, until the last device had its samples
  /// Forward and backward, of all devices at once, while nothing is sent: sending takes cores from the device, too.
  double pass_s = 0;
  double seconds_per_byte = 0;                  ///< of what hosts add up, by all_reduce
  double values = 0;                            ///< parameters
  double gradient_bytes = 4;                    ///< of each, in the type in which they are sent
  bool may_round = true;                        ///< gradients to bf16
  double rounding_s_per_value = 0;              ///< of which each takes so long
  std::optional<double> powersgd_s, one_bit_s;  ///< from the gradients to the new parameters; nothing: it may not be
};

struct Prediction {
  Packing packing = Packing::none;
  double step_s = 0;
};

/// What a step takes with each that may be, in order; none is always there. Gradients in bf16 save what was waited for
/// them, at most; what is packed is sent after the backward pass, which then has its cores for itself, and takes the
/// place of update and exchange.
std::vector<Prediction> predict(const Exchange& exchange);

/// The first whose step takes at most a tenth longer than the shortest.
Packing choose(const std::vector<Prediction>& predictions);

/// The numbers by which it was chosen, as a sentence.
std::string reason(const Exchange& exchange, const std::vector<Prediction>& predictions);

/// "0.25 s", "3.1 ms": three digits, and no exponent.
std::string seconds_text(double seconds);

}  // namespace remuda::compress
