// Makes the model that a job names, built in or from a TorchScript file.
#pragma once

#include <memory>

#include "base/result.h"
#include "job/train_job.h"
#include "train/model/model.h"

namespace remuda::train {

/// The model a job names, with parameters drawn from torch's default generator (seed it first). Errors name the file of
/// a TorchScript model that cannot be loaded, or the key that does not fit the data or the model. engine.script_fusers
/// holds for all TorchScript of the process, from when this loads a model on.
Result<std::unique_ptr<Model>> make_model(const job::ModelSpec& spec, const ModelInput& input,
                                          const job::MemorySpec& memory = {}, const job::EngineSpec& engine = {});

/// How many blocks memory.recompute is about, for Model::recompute_blocks().
size_t blocks_to_recompute(const job::MemorySpec& memory);

}  // namespace remuda::train
