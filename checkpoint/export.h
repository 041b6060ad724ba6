// Export: the model of a checkpoint as a file of weights, which PyTorch and `model.weights` read.
#pragma once

#include <string>

#include "base/result.h"
#include "checkpoint/store.h"

namespace remuda::checkpoint {

/// Writes the parameters, or with `average` their running average, and the buffers as safetensors to `path`, whole or
/// not at all; a tensor of several names under each. Returns its bytes.
Result<uint64_t> write_model(const Found& checkpoint, bool average, const std::string& path);

}  // namespace remuda::checkpoint
