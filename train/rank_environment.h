// What the environment says of this process: its place among the ranks of a run, and its device.
#pragma once

#include "base/result.h"
#include "comm/communicator.h"
#include "train/members.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// For one of `ranks` ranks, by torchrun's variables and remuda's own. Terms are the caller's business.
Result<comm::ConnectOptions> connect_options(int ranks);

/// The same for a later meeting, of these members, of which this is the one with that number.
Result<comm::ConnectOptions> connect_options(const Members& members, int number);

/// What does not depend on the rank: the secret, the transport, where it listens, how long it waits.
Result<comm::ConnectOptions> connect_options_of_any();

/// For one of as many ranks as WORLD_SIZE says; without it, for a single one.
Result<comm::ConnectOptions> connect_options();

/// The device of this rank: the only one of its type that it sees.
Result<torch::Device> device_of_rank();

}  // namespace remuda::train
