// Tests only: ranks on several hosts, that compute on CPUs or on the stand-in.
#pragma once

#include <functional>
#include <string>

#include "comm/testing/run_ranks.h"
#include "train/device/device_ops.h"

namespace remuda::train::testing {

/// Ranks of which the first `on_first_host` share a host, and each of the others is alone.
inline void on_hosts(int ranks, int on_first_host, const std::function<void(comm::Communicator&)>& body) {
  comm::run_ranks(ranks, comm::ConnectOptions::Transport::automatic, body, 30,
                  [on_first_host](comm::ConnectOptions& options) {
                    options.host = options.rank < on_first_host ? "host" : "host " + std::to_string(options.rank);
                  });
}

/// What ranks compute on: all on CPUs; or all but the first on the stand-in, whose copies take their time.
enum class On { cpus, both };

inline DeviceOps ops_for(On on, int rank) {
  return DeviceOps::open(on == On::cpus || rank == 0 ? torch::kCPU : torch::Device(torch::kXPU, int8_t((rank - 1) % 3)))
      .value();
}

}  // namespace remuda::train::testing
