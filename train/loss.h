// Losses as sums: what a rank adds to the job's total, and the number of loss units in the sum.
#pragma once

#include "job/train_job.h"
#include "train/torch_compat.h"

namespace remuda::train {

struct LossSum {
  torch::Tensor sum;     ///< scalar: the loss summed over its units
  double weight = 0;     ///< loss units: samples, or tokens that count
  int64_t correct = -1;  ///< units predicted right; -1 where it is not defined or was not requested
};

/// The target lies on the host, which counts the weight without waiting for the device of the scores.
/// Scores of 16 bits are taken as float32.
/// `scores` [n, classes] with `target` [n], or [n, t, vocabulary] with [n, t]. Targets equal to `padding` count neither
/// in the sum nor in the weight. mse compares with the one-hot target, its unit is one sample.
LossSum loss_sum(job::Loss loss, const torch::Tensor& scores, const torch::Tensor& target, int64_t padding,
                 bool count_correct = false);

}  // namespace remuda::train
