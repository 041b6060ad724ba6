// What ranks own of a run, from those that own it to those that are to own it.
#pragma once

#include "base/result.h"
#include "comm/communicator.h"
#include "train/flat_layout.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// Collective. `from` is what this rank owns by the layout `before` of some values, one for each parameter's element,
/// its parts of the buckets one after the other; `to` gets what it owns of them by `after`. The layouts differ in
/// owners only, and no blocks are sharded. By way of memory of the host, a bucket at a time.
Result<void> move_state(comm::Communicator& communicator, const FlatLayout& before, const FlatLayout& after,
                        const torch::Tensor& from, const torch::Tensor& to);

}  // namespace remuda::train
