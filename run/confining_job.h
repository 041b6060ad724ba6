// The job whose device filter applies to this process.
#pragma once

#include <cstdint>
#include <optional>

#include "pool/state.h"

namespace remuda::run {

/// The job that this process is a part of, if that job's device filter applies to this process too, which then sees
/// only a part of the machine.
std::optional<int64_t> confining_job(const pool::PoolState& state);

}  // namespace remuda::run
