// FailureReport: what a rank that gives up tells all others over their control connections.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"

namespace remuda::comm {

/// Sent as raw bytes.
struct FailureReport {
  uint64_t sequence = 0;    ///< of the call in which the rank gave up
  int32_t culprit = 0;      ///< the rank that it lost; itself, where the cause is no lost rank
  uint32_t length = 0;      ///< of the sentence
  char sentence[496] = {};  ///< the cause, where it is no lost rank
};
static_assert(sizeof(FailureReport) == 512);

FailureReport report_of(const Error& error, int rank, uint64_t sequence);

/// The error for rank `self` that follows from what `peer` reports, safe for a terminal whatever that is; nothing where
/// it names no cause. Pure.
std::optional<Error> cause_in(const FailureReport& report, int peer, int self);

}  // namespace remuda::comm
