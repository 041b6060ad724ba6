// Connecting some of the ranks of a job: what connect() does for all of them.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace remuda::comm {

/// `ranks` of the job, this one among them, each once; the first one listens at the master address.
Result<std::unique_ptr<Communicator>> connect_ranks(ConnectOptions options, std::vector<int> ranks);

}  // namespace remuda::comm
