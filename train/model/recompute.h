// Recompute: what a block of a model computes on the way is not kept for backward(), but computed there once more
// (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174): one more forward pass, and
// of all blocks only the inputs in memory.
#pragma once

#include <functional>
#include <vector>

#include "train/torch_compat.h"

namespace remuda::train {

using Block = std::function<torch::Tensor(const torch::Tensor&)>;
/// A block's own, as they are now: a block may put new ones in their place.
using Buffers = std::function<std::vector<torch::Tensor>()>;

/// block(input), of which backward() keeps `input` and `block` only. Gradients are the same bits as without: the second
/// time it draws the same random numbers and computes in the same precision, and `buffers`, the block's own such as the
/// statistics of batch norm, do not count the batch again. Without gradients (NoGradGuard) it is block(input).
///
/// The block leaves `input` as it is; one that changes it throws. What it computes while it trains must not depend on
/// buffers that it changes itself. It may use parameters, and constants that need no gradient; any other tensor that
/// needs one must be `input`.
///
/// `parameters`: all that the block uses, where they may be used elsewhere, too. Their gradients leave the block as
/// those of an operator leave it: all at its end, to be added up by the graph around it in the order that it has
/// without recompute, so that each parameter becomes ready once, with the same bits. (Those of a parameter that the
/// block itself uses several times are one gradient then.) A block that uses another parameter throws in backward().
/// Without them gradients are added up parameter by parameter while the block is computed backward, in less memory; one
/// that is used outside of the block too, or by two of them, becomes ready once for each.
torch::Tensor recomputed(Block block, const torch::Tensor& input, Buffers buffers = {},
                         const std::vector<torch::Tensor>& parameters = {});

/// What `compute` gives, which in a recomputed block runs in the first pass only: the second one gets the same numbers.
/// Outside of such blocks it just runs.
std::vector<double> computed_once(const std::function<std::vector<double>()>& compute);

/// Whether this thread computes the output of a recomputed block, for the first or the second time.
bool computes_block();

/// Whether this thread runs the backward pass of a recomputed block.
bool in_recomputed_block();

/// Seconds that this thread has spent so far on computing blocks once more. Those of a CPU only: another device is
/// still computing when its thread goes on.
double recomputed_s();

}  // namespace remuda::train
