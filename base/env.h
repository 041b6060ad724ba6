// Every environment variable remuda reads, in one list. Nothing else in the project calls getenv.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace remuda::env {

struct Variable {
  const char* name;
  const char* meaning;
};

// What torchrun sets, and `remuda train` with it.
inline constexpr Variable rank{"RANK", "this process's rank in the job"};
inline constexpr Variable world_size{"WORLD_SIZE", "number of ranks in the job"};
inline constexpr Variable master_addr{"MASTER_ADDR", "address of rank 0"};
inline constexpr Variable master_port{"MASTER_PORT", "port of rank 0"};

// What `remuda train` tells its workers.
inline constexpr Variable secret{"REMUDA_SECRET", "the job's secret; every connection between ranks must prove it"};
inline constexpr Variable listen_fd{"REMUDA_LISTEN_FD", "rank 0's listening socket, inherited and bound already"};
inline constexpr Variable events_fd{"REMUDA_EVENTS_FD", "where a worker writes its events, a JSON line each"};
inline constexpr Variable transport{"REMUDA_TRANSPORT", "how ranks exchange data: auto, shm or tcp; auto unless set"};
inline constexpr Variable bind{"REMUDA_BIND", "address a rank listens on; 127.0.0.1 unless set"};

// What the user may set.
inline constexpr Variable connect_timeout{"REMUDA_CONNECT_TIMEOUT",
                                          "seconds ranks wait for each other at the start; 60 unless set"};
inline constexpr Variable openblas_coretype{"OPENBLAS_CORETYPE", "OpenBLAS kernels; chosen from the CPU unless set"};
inline constexpr Variable tmpdir{"TMPDIR", "where scratch files go; /tmp unless set"};
inline constexpr Variable no_color{"NO_COLOR", "no colour in output when set and not empty"};
inline constexpr Variable term{"TERM", "dumb: no colour, no progress bar"};

/// Every variable above, for documentation and tests.
std::span<const Variable> all();

std::optional<std::string> get(const Variable& variable);
/// The value as an integer in [low, high]; an error naming the variable otherwise, also when it is not set.
Result<int> get_int(const Variable& variable, int low, int high);

}  // namespace remuda::env
