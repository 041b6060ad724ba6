// Transitions: how a pool changes. Pure functions of state, time and facts; the store makes each one atomic.
//
// Invariants that every transition keeps, and check() proves:
//   the shares of a device's leases add up to at most 1; a core of the host is one running job's; a lease belongs to a
//   running job; a running job holds as many leases as it asked for; a job that stands for an array never runs; only a
//   running job that is preemptible makes room for another; ids ascend.
//
// `now_s` is the wall clock, seconds since 1970. Where it was set back, times in the future count as now: no duration
// is negative, no lease ends early, and no job waits for the clock to catch up.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"
#include "place/place.h"
#include "pool/state.h"
#include "pool/usage.h"

namespace remuda::pool {

/// Shortens a job's texts for people (name, command, why, ...) to what a pool keeps, and removes characters that cannot
/// be shown. Pool::change does that for every job.
void clean_texts(Job& job);

/// Adds a waiting job and returns its id. Refuses (usage) a job that the policy does not admit, one that waits for one
/// that does not exist, or `after` one that has failed, and one of an array that has ended; and (never) a request that
/// can never be met on this machine (the refusal's sentence). A job of an array has the array's priority, and is paused
/// where the array is.
Result<int64_t> submit(PoolState& state, Job job, const Inventory& inventory, double now_s, const Policy& policy = {});

/// In the order of their turns: by priority, then by least decayed usage of their user, then by arrival.
std::vector<const Job*> waiting_jobs(const PoolState& state, const Policy& policy, double now_s);

/// Starts every job whose turn it is, in the order of waiting_jobs(). A job that cannot start yet reserves the devices
/// it waits for only once it has waited for `patience_s`. Writes each waiting job's `why`, in words that change only
/// when something happens: a pass that starts nothing changes nothing. For jobs behind the first 32, `why` says only
/// that. A job whose user has as much as the policy permits waits, and nothing is reserved for it; devices that are
/// drained, or that the policy reserves for others, count as held. Once 64 unlike requests of a user were tried in
/// vain, the jobs that he has behind them wait for these, so that no user makes a pass long for all.
///
/// Backfill: a job whose time limit (and grace time) ends before the job for which devices are kept can start, by the
/// time limits of all that runs, may have those devices meanwhile (Job::passed). So the job in front starts no later
/// than it could when they were kept for it, as long as every job keeps its limit; where one that it waits for has no
/// limit, nobody passes it.
///
/// A job that waits `after` one that failed ends, as cancelled. A job that is paused, for which no keeper could be
/// started, or that is to begin later, is passed over, and nothing is reserved for it. `held` are devices in use
/// without a lease. Where a job could start if preemptible running jobs of lower priority ended, the lowest of them are
/// marked (Job::preempted_by), no more than are needed, and their devices are kept for it; their keepers stop and
/// requeue() them. Returns the ids of jobs started.
///
/// To be called in the same Pool::change as every transition that may let a job start (submit, end, requeue, cancel,
/// resume, reprioritize, reap), and when the time of begins_next() has come; then a waiting keeper need only check
/// whether its job is running.
std::vector<int64_t> schedule(PoolState& state, const Inventory& inventory, const std::vector<place::Held>& held,
                              const Policy& policy, double now_s);

/// What takes the place of schedule() while the policy cannot be read: writes that, with the error, as the reason of
/// every job that would be looked at.
void hold_back(PoolState& state, const std::string& error, double now_s);
/// Begins such a reason.
inline constexpr const char* kNoPolicy = "no job starts while the policy is wrong: ";

/// When the next waiting job that is not to begin before then may start; kNever_s (base/clock.h) where there is none.
double begins_next(const PoolState& state, double now_s);

/// What running jobs hold, devices and parts of the host, in the form that place() takes; without the jobs in `but`.
std::vector<place::Held> held_by_leases(const PoolState& state, std::span<const int64_t> but = {});

/// Exit status of a job that was ended by remuda, not by its program.
inline constexpr int kEndedByRemuda = 125;

struct Ending {
  int exit_status = 0;
  int signal = 0;
  std::string why;
  Reading<int64_t> memory_peak_bytes;
  double ended_s = 0;  ///< when that was, where it is said later: between the job's start and now; 0: now
  bool operator==(const Ending&) const = default;
};
/// Ends the job: its leases end, its user's usage grows by the time until it had ended. Does nothing if it has ended
/// already, or does not exist.
void end(PoolState& state, int64_t job, const Ending& ending, const Policy& policy, double now_s);

/// Puts a running job back into the queue with its old place: its leases end, `restarts` grows, and where processes of
/// it had started, Job::earlier does. Does nothing if it does not run.
void requeue(PoolState& state, int64_t job, const Policy& policy, double now_s);

/// The same where nothing of it has started: that is no restart.
void give_way(PoolState& state, int64_t job, const Policy& policy, double now_s);

/// Ends a waiting job, as cancelled. Where its end is to be told (Job::at_end, Job::mail) and it is unkept, it is
/// marked only, and the keeper that it gets then ends it, with this reason.
void end_waiting(PoolState& state, int64_t job, const Ending& ending, const Policy& policy, double now_s);

/// Who asks for a change.
struct Asker {
  int uid = 0;
  std::string name;  ///< as others read it
};

/// Marks a running job as cancelled, and its keeper then ends it. A waiting job ends as end_waiting() does, and so does
/// one that has no keeper yet. Where another user does that first, Job::why says who. The same for all jobs of an
/// array. Refuses (usage) a job that does not exist or has ended, and users other than its own and root.
Result<void> cancel(PoolState& state, int64_t job, const Asker& who, double now_s, const Policy& policy = {});

/// Those that have not ended, by name, by user, or both; an empty text is any. An array stands for its jobs.
struct Selection {
  std::string name, user;
};
std::vector<int64_t> select_jobs(const PoolState& state, const Selection& selection);

/// Gives a job that has not ended another priority; to an array, and all its jobs. Refuses (usage) as cancel() does,
/// and a priority above what the policy gives the job's user; root may give any.
Result<void> reprioritize(PoolState& state, int64_t job, int priority, int uid, const Policy& policy = {});

/// A waiting job does not start until it is resumed, and keeps its place; of an array, no job that waits. Refuses
/// (usage) as cancel() does, and jobs that run, that are paused already, or, for resume(), are not.
Result<void> pause(PoolState& state, int64_t job, int uid);
Result<void> resume(PoolState& state, int64_t job, int uid);

/// A waiting job that outlives its keeper has lost it.
void lose_keeper(PoolState& state, int64_t id);
/// No keeper could be started for an unkept job: one that was granted devices, and so has not begun, waits again.
void fail_keeper(PoolState& state, int64_t id, const Policy& policy, double now_s);
/// Whether a keeper is to be started for the job: it is unkept, and was granted its devices, has an end to tell, or the
/// last attempt has failed.
bool needs_keeper(const Job& job);
/// Gives an unkept job a keeper: a process of its user. Refuses (usage) a job of another user, and one that has a
/// keeper.
Result<void> take_over(PoolState& state, int64_t id, int uid, const process::ProcessId& keeper);

/// From here on the device is granted to nobody; where it is drained already, the reason is replaced. Refuses (usage)
/// an empty reason.
Result<void> drain(PoolState& state, Drain drain);
/// Ends that. Refuses (usage) a device that is not drained; `label` names it for people.
Result<void> undrain(PoolState& state, const std::string& device, const std::string& label);

/// The machine is about to go: drains those devices that are not drained, as `drain` says, and asks all running jobs to
/// end (Job::evicted); their keepers stop them, and requeue() those that may be.
void leave_host(PoolState& state, const std::vector<std::string>& devices, const Drain& drain);

/// Ends every job whose keeper is gone and of which no process is left, with status 125. `lives`: whether a process is
/// alive; `has_orphans`: whether any process that carries the job's number is. Returns the ids of jobs that are
/// orphaned but not over: their keeper is gone, their processes are not.
std::vector<int64_t> reap(PoolState& state, const std::function<bool(const process::ProcessId&)>& lives,
                          const std::function<bool(const Job&)>& has_orphans, const Policy& policy, double now_s);

/// The first invariant that does not hold, as a sentence; empty when all hold.
std::string check(const PoolState& state);

}  // namespace remuda::pool
