// remuda ps, queue, why, cancel: who holds what, who waits, and why.
#pragma once

#include "base/json.h"
#include "cli/command.h"
#include "cli/machine.h"
#include "run/caretaker.h"

namespace remuda::cli {

void add_ps(Program& program);
void add_queue(Program& program);
void add_why(Program& program);
void add_cancel(Program& program);

/// {"leases": [...], "waiting": [...]}; devices in use without a lease stand among the leases, with "holder" in place
/// of a job.
Json pool_json(const pool::PoolState& state, const std::vector<place::Held>& foreign, const Inventory& inventory,
               double now_s);

/// A line for each device that somebody has, and for each job that waits; see Table::text() for `width`.
std::string leases_text(const pool::PoolState& state, const std::vector<place::Held>& foreign,
                        const Inventory& inventory, double now_s, size_t width);
std::string queue_text(const pool::PoolState& state, double now_s, size_t width);

/// Cancels jobs for their user or root; `remuda release` is the same.
Result<int> cancel_jobs(const MachineFlags& machine, const std::vector<int64_t>& jobs);

}  // namespace remuda::cli
