// Choose: what hosts had best send each other, from how fast they exchange and how fast they compute. Pure.
#pragma once

#include <string>
#include <vector>

namespace remuda::compress {

/// What hosts send each other, in order of how much it changes what is learned.
enum class Packing { none, bf16, powersgd, one_bit };
/// As the keys of a job call it: "gradients in bf16" for bf16.
const char* to_string(Packing packing);

struct Exchange {
  double seconds_per_byte = 0;  ///< of what is added up over all ranks, by all_reduce
  double compute_s = 0;         ///< of a step, on the device that takes longest for its part
  double values = 0;            ///< parameters
  double gradient_bytes = 4;    ///< of each, in the type in which the job has them sent
  double value_bytes = 4;       ///< likewise of parameters
  double low_rank_values = 0;   ///< that powersgd sends in place of all: LowRankSum::sent()
  double rank = 4;              ///< of powersgd
  bool may_round = true, may_powersgd = true, may_one_bit = true;  ///< what the job goes together with, besides none
};

struct Prediction {
  Packing packing = Packing::none;
  double step_s = 0;
};

/// What a step takes with each that may be, in order; none is always there. Gradients leave during the backward pass,
/// two thirds of the computing (two products of matrices for each one of the forward pass); parameters and what is
/// packed, after it.
std::vector<Prediction> predict(const Exchange& exchange);

/// The first whose step takes at most a tenth longer than the shortest.
Packing choose(const std::vector<Prediction>& predictions);

/// The numbers by which it was chosen, as a sentence.
std::string reason(const Exchange& exchange, const std::vector<Prediction>& predictions);

}  // namespace remuda::compress
