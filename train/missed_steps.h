// The steps that parameters of a state have missed (parameter_steps.h), in the order of the model, which does not
// depend on a run's layout: as checkpoints, buddies and ranks that join have them.
#pragma once

#include <cstdint>
#include <vector>

#include "train/flat_parameters.h"
#include "train/model/model.h"
#include "train/owned_state.h"

namespace remuda::train {

/// By each of Model::parameters(); empty where none has missed any.
std::vector<int64_t> missed_steps(const OwnedState& state, const FlatParameters& flat, Model& model);
/// And back; to be called before OwnedState::resume().
void set_missed(OwnedState& state, const FlatParameters& flat, Model& model, const std::vector<int64_t>& missed);

}  // namespace remuda::train
