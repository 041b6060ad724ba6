// Rules: what each caller may ask for, and see. Pure.
#pragma once

#include <string>

#include "agent/caller.h"
#include "base/result.h"
#include "policy/policy.h"
#include "pool/operation.h"

namespace remuda::agent {

/// How many jobs may wait, and how much memory the records of a user's take.
inline constexpr int kMostWaitingOfUser = 10000, kMostWaiting = 50000;
inline constexpr size_t kMostBytesOfUser = 32 << 20;
/// How many jobs one request may name, for how many ends a job may wait, and the smallest part of a device. Each change
/// looks at them.
inline constexpr size_t kMostNamed = 1000, kMostAwaited = 256;
/// The same of all waiting jobs of a user: the pool does not forget what is waited for.
inline constexpr size_t kMostAwaitedOfUser = 10000;
inline constexpr double kSmallestShare = 0.01;

/// Refuses (usage) what the caller may not ask for. What a submission says of its user, its process and its state is
/// replaced by what is known of the caller; `user` is the caller's name and groups, `request` the id of the request.
///   submit      for oneself, and only into arrays of one's own, within the bounds above; the policy decides over the
///   rest cancel, reprioritize, pause, resume    the transition decides, by the caller's uid drain, undrain    only an
///   administrator what a keeper says of its job: only that keeper
Result<void> admit(pool::Operation& operation, const Caller& caller, const policy::User& user,
                   const std::string& request, const pool::PoolState& state);

/// The job as this caller may see it: of others' jobs without command, folder, log and processes.
pool::Job visible_to(const Caller& caller, const pool::Job& job);

}  // namespace remuda::agent
