// Pages: what callers read of a pool, in parts that fit an answer whatever its jobs are like. Pure.
//
// How many jobs there are, and how long each is, users decide: so a page is full by its bytes, and the client asks for
// the next one. What is of no job comes with the first page, and has a bound of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/caller.h"
#include "pool/state.h"
#include "wire/message.h"

namespace remuda::agent {

/// What there is to read of: a pool, and what other managers of its machine give out.
struct Readable {
  const pool::PoolState& state;
  const std::vector<pool::Allocation>& allocations;
};

/// The open jobs with ids above `after`, of all users or the caller's own.
wire::Page page_of_jobs(const Readable& all, const Caller& caller, bool own, int64_t after);

/// The jobs that run and have ids above `after`, in short; on the first page, where `after` is 0, `job`, too, as it is:
/// nullptr is none.
wire::Page page_around(const Readable& all, const Caller& caller, const pool::Job* job, int64_t after);

/// This job alone.
wire::Page page_with(const Readable& all, const Caller& caller, const pool::Job* job);

/// Of these jobs, which have ended, those that fit, in the order given. `has_more` where one did not.
wire::Page page_of_ended(const Readable& all, const Caller& caller, const std::vector<pool::Job>& jobs);

/// The machine as a user sees it: the commands of others are their own. Of very many processes some are left out, of
/// each device the same number.
Inventory machine_for(const std::string& user, Inventory machine);

}  // namespace remuda::agent
