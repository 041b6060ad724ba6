#include "run/queue_entry.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.h"
#include "place/health.h"
#include "place/place.h"
#include "pool/lifeline.h"
#include "pool/logs.h"
#include "process/spawn.h"

namespace remuda::run {
namespace {

/// How often the keeper that looks after the pool does so without an event: on the live machine, processes that do not
/// use remuda start and end without notice.
constexpr double kLiveLook_s = 2, kRecordedLook_s = 10;
/// How long the next in line, and the others, wait before they check that it does.
constexpr double kNextTrust_s = 5, kTrust_s = 30;
static_assert(kTrust_s < pool::kLongestBeat_s / 2, "a waiting keeper is not taken for a stopped one");

}  // namespace

Result<void> QueueEntry::submit() {
  REMUDA_ASSIGN(const place::Answer answer, place::place(place::Layout(caretaker_.inventory()), spec_.job.request, {}));
  if (const auto* refusal = std::get_if<place::Refusal>(&answer); refusal && refusal->never) {
    why_ = refusal->sentence;
    status_ = place::kNever;
    return {};
  }
  auto entered = tidy_and_enter();
  while (!entered && spec_.job.array != 0 && retry_.rest(0, entered.error())) {  // the array is in the queue already
    for (const ReceivedSignal& signal : link_.take_signals())
      if (signal.number != SIGUSR1 && signal.number != SIGUSR2) return tl::unexpected(entered.error());
    if (link_.gone()) return tl::unexpected(entered.error());
    entered = tidy_and_enter();
  }
  retry_.reset();
  if (!entered) return tl::unexpected(entered.error());
  if (!*entered) id_ = 0;
  return {};
}

Result<bool> QueueEntry::tidy_and_enter() {
  REMUDA_ASSIGN(const pool::PoolState state, caretaker_.tidy());
  if (spec_.log_only && spec_.job.array == 0) sweep_logs(spec_.pool, state);
  return enter();
}

/// The whole change is undone where the job would have to wait but may not.
Result<bool> QueueEntry::enter() {
  pool::Job job = spec_.job;
  job.keeper = process::own_process_id();
  const auto changed = caretaker_.change(
      [&](pool::PoolState& state) -> Result<void> {
        REMUDA_ASSIGN(const policy::Policy policy, caretaker_.policy());
        REMUDA_ASSIGN(id_, remuda::pool::submit(state, job, caretaker_.inventory(), wall_s(), policy));
        if (spec_.log_only && job.log.empty()) state.find(id_)->log = pool::pool_log_path(spec_.pool, id_);
        return {};
      },
      awaited_by(job),
      [&](const pool::PoolState& state) -> Result<void> {
        const pool::Job* entered = state.find(id_);
        if (spec_.wait || (entered && entered->state == pool::JobState::running)) return {};
        status_ = place::kNotNow;
        why_ = entered ? entered->why : "it cannot start now";
        return failed(why_);
      });
  if (!changed && status_ != place::kNotNow) return tl::unexpected(changed.error());
  return changed.has_value();
}

Result<bool> QueueEntry::wait() {
  claim_.reset();
  has_waited_ = false;
  while (id_ > 0) {
    const Result<Step> step = wait_once();
    if (step) {
      retry_.reset();
      if (*step != Step::waits) return *step == Step::runs;
    } else if (!retry_.rest(id_, step.error())) {
      return tl::unexpected(step.error());
    }
    for (const ReceivedSignal& signal : link_.take_signals())
      if (signal.number != SIGUSR1 && signal.number != SIGUSR2) return leave(signal.number);
    if (link_.gone()) return leave(SIGKILL);
  }
  return false;
}

Result<QueueEntry::Step> QueueEntry::wait_once() {
  REMUDA_ASSIGN(const pool::PoolState state, read_pool());
  const pool::Job* job = state.find(id_);
  if (job) time_limit_s_ = job->time_limit_s;
  if (job && job->state == pool::JobState::running) return claim(state);
  if (!job || job->state == pool::JobState::ended) {
    REMUDA_ASSIGN(const auto ended, caretaker_.pool().find(id_));
    why_ = ended ? ended->why : "it is not in the pool any more";
    status_ = process::kOwnFailure;
    return Step::is_over;
  }
  report_waiting(*job);
  has_waited_ = true;
  REMUDA_TRY(rest(state));
  return Step::waits;
}

/// The more jobs wait, the less often each keeper reads the pool, so that the total load does not grow. A keeper whose
/// job is started is woken by a signal.
Result<void> QueueEntry::rest(const pool::PoolState& state) {
  constexpr double kEach_s = 0.005, kMost_s = 2;
  if (maintains_pool_)
    return caretaker_.pool().wait(keepers_to_watch(state), until_next_look_s(state), link_.readable());
  const auto waiting = std::ranges::count(state.jobs, pool::JobState::waiting, &pool::Job::state);
  if (link_.wait(std::min(kMost_s, kEach_s * static_cast<double>(waiting)))) return {};
  return caretaker_.pool().wait(keepers_to_watch(state), is_next_ ? kNextTrust_s : kTrust_s, link_.readable());
}

Result<pool::PoolState> QueueEntry::read_pool() {
  pool::beat(caretaker_.folder());
  REMUDA_ASSIGN(pool::PoolState state, caretaker_.pool().read());
  const int before = count_before(state);
  const bool was_first = std::exchange(maintains_pool_, before == 0);
  is_next_ = before == 1;
  const pool::Job* job = state.find(id_);
  if (!job || job->state != pool::JobState::waiting || !(maintains_pool_ || was_first)) return state;
  REMUDA_TRY(caretaker_.tidy());
  const double now_s = monotonic_s();
  if (was_first && (now_s - read_at_s_ >= look_s() || wall_s() >= begins_at_s_)) {
    read_at_s_ = now_s;
    begins_at_s_ = pool::begins_next(state, wall_s());
    if (spec_.live) REMUDA_TRY(caretaker_.read_machine());
    REMUDA_TRY(caretaker_.change([](pool::PoolState&) -> Result<void> { return {}; }));
  }
  return caretaker_.pool().read();
}

double QueueEntry::look_s() const { return spec_.live ? kLiveLook_s : kRecordedLook_s; }

/// The keeper that looks after the pool starts jobs whose time to begin has come.
double QueueEntry::until_next_look_s(const pool::PoolState& state) {
  begins_at_s_ = pool::begins_next(state, wall_s());
  return std::clamp(begins_at_s_ - wall_s(), 0.0, look_s());
}

/// How many working keepers wait before this one, at most 2; 2 also where this job is not in the queue.
int QueueEntry::count_before(const pool::PoolState& state) const {
  constexpr int kMost = 2;
  int before = 0;
  for (const pool::Job& job : state.jobs) {
    if (job.state != pool::JobState::waiting || is_array(job)) continue;
    if (job.id == id_) return before;
    if (pool::is_working(caretaker_.folder(), job.keeper) && ++before == kMost) break;
  }
  return kMost;
}

std::vector<process::ProcessId> QueueEntry::keepers_to_watch(const pool::PoolState& state) const {
  std::vector<process::ProcessId> keepers;
  for (const pool::Job& job : state.jobs) {
    if (job.state == pool::JobState::ended || job.id == id_ || !pool::lives(caretaker_.folder(), job.keeper)) continue;
    keepers.push_back(job.keeper);
    if (!maintains_pool_ && job.state == pool::JobState::waiting && !is_array(job)) return {job.keeper};
  }
  return keepers;
}

void QueueEntry::report_waiting(const pool::Job& job) {
  if (has_reported_ && job.why == reported_) return;
  has_reported_ = true;
  reported_ = job.why;
  link_.send(Message::Kind::waiting, id_, job.why);
}

/// Names one of these devices that must not be used, and why. The process that granted them may have read the machine
/// before an error, or started after it: a driver reports an error only to processes that watch at that time.
std::string QueueEntry::ailment_among(const std::vector<std::string>& devices) const {
  const Inventory& inventory = caretaker_.inventory();
  for (const std::string& id : devices)
    if (const Device* device = inventory.find(id))
      if (const auto ailment = place::ailment(inventory, *device))
        return fmt::format("{} {}", device->label(), *ailment);
  return "";
}

/// Where a device has a fault, or a job of another pool claimed it first, this job waits again, or ends if it may not
/// wait.
Result<QueueEntry::Step> QueueEntry::claim(const pool::PoolState& state) {
  // Another keeper may have granted the devices, with a newer reading of the machine than this one has.
  if (const auto read = has_waited_ ? caretaker_.read_machine() : caretaker_.read_machine_if_old(); !read)
    link_.send(Message::Kind::note, id_, read.error().message);
  if (!spec_.live) return Step::runs;
  std::vector<std::string> devices;
  for (const pool::Lease& lease : state.leases)
    if (lease.job == id_) devices.push_back(lease.device);
  if (const std::string why = ailment_among(devices); !why.empty()) return give_way(why);
  auto claim = pool::Claim::take(spec_.pool, devices);
  if (claim) {
    claim_ = std::move(*claim);
    return Step::runs;
  }
  const pool::NotClaimed& refusal = claim.error();
  if (!refusal.device.empty()) {
    const Device* device = caretaker_.inventory().find(refusal.device);
    return give_way(fmt::format("{} is held by {}", device ? device->label() : refusal.device, refusal.why));
  }
  link_.send(Message::Kind::note, id_, "other pools cannot see that it holds its devices: " + refusal.why);
  return Step::runs;
}

/// Ends the leases, and reads the machine again before devices are granted to any job: this reading shows the other
/// pool's claims.
Result<QueueEntry::Step> QueueEntry::give_way(const std::string& why) {
  REMUDA_TRY(caretaker_.pool().change([&](pool::PoolState& state) -> Result<void> {
    if (!spec_.wait) {
      end(state, id_, {.exit_status = place::kNotNow, .why = why}, {}, wall_s());
      return {};
    }
    const pool::Job* job = state.find(id_);
    const int restarts = job ? job->restarts : 0;
    requeue(state, id_, {}, wall_s());
    if (pool::Job* queued = state.find(id_)) queued->restarts = restarts;  // it has not started
    return {};
  }));
  REMUDA_TRY(caretaker_.read_machine());
  REMUDA_TRY(caretaker_.change([](pool::PoolState&) -> Result<void> { return {}; }));
  if (spec_.wait) return Step::waits;
  id_ = 0;
  why_ = why;
  status_ = place::kNotNow;
  return Step::is_over;
}

Result<bool> QueueEntry::leave(int signal) {
  REMUDA_TRY(caretaker_.change([&](pool::PoolState& state) -> Result<void> {
    end(state, id_, {.signal = signal, .why = "left the queue"}, {}, wall_s());
    return {};
  }));
  status_ = process::exit_code({0, signal});
  return false;
}

}  // namespace remuda::run
