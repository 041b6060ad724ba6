// The running statistics of a TorchScript model's batch norms, and by how much a batch moves them, which no interface
// of libtorch says: it is a constant of PyTorch's modules, or stands in the program.
#pragma once

#include <torch/script.h>
#include <vector>

#include "train/model/model.h"

namespace remuda::train {

/// Of each module with buffers `running_mean` and `running_var`. The momentum is the module's `momentum`, as
/// torch.nn.BatchNorm has it; where it has none, as in a trace, what the program gives torch.batch_norm with that
/// buffer; where that is no constant either, it is not known.
std::vector<NormStatistics> script_norms(const torch::jit::Module& model);

}  // namespace remuda::train
