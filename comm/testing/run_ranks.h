// Tests only: N ranks as threads of this process, over the real transports.
#pragma once

#include <functional>

#include "comm/communicator.h"

namespace remuda::comm {

inline constexpr auto kSharedMemory = ConnectOptions::Transport::shared_memory;

/// Runs `body` once per rank, each in a thread with its own communicator (connected over loopback), and joins them.
/// The first exception a rank throws is thrown again here, once all have ended. `timeout_s` is
/// ConnectOptions::timeout_s; `adjust` may change more of a rank's options.
void run_ranks(
    int size, ConnectOptions::Transport transport, const std::function<void(Communicator&)>& body,
    double timeout_s = 30, const std::function<void(ConnectOptions&)>& adjust = [](ConnectOptions&) {});

}  // namespace remuda::comm
