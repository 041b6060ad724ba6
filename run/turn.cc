#include "run/turn.h"

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

/// How often the one who looks after all does so unasked: on the live machine others come and go without a word.
constexpr double kLiveLook_s = 2, kRecordedLook_s = 10;
/// How long the others trust that somebody does.
constexpr double kTrust_s = 30;

}  // namespace

Result<void> Turn::submit() {
  REMUDA_ASSIGN(const place::Answer answer, place::place(place::Layout(caretaker_.inventory()), spec_.job.request, {}));
  if (const auto* refusal = std::get_if<place::Refusal>(&answer); refusal && refusal->never) {
    why_ = refusal->sentence;
    status_ = place::kNever;
    return {};
  }
  REMUDA_ASSIGN(const pool::PoolState state, caretaker_.tidy());
  if (spec_.log_only && spec_.job.array == 0) sweep_logs(spec_.pool, state);
  REMUDA_ASSIGN(const bool entered, enter());
  if (!entered) id_ = 0;
  return {};
}

/// The whole change is left out where the job may not wait and would have to.
Result<bool> Turn::enter() {
  pool::Job job = spec_.job;
  job.keeper = process::own_process_id();
  const auto changed = caretaker_.change(
      [&](pool::PoolState& state) -> Result<void> {
        REMUDA_ASSIGN(id_, remuda::pool::submit(state, job, caretaker_.inventory(), wall_s()));
        if (spec_.log_only && job.log.empty()) state.find(id_)->log = pool::pool_log_path(spec_.pool, id_);
        return {};
      },
      job.after,
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

Result<bool> Turn::wait() {
  claim_.reset();
  while (id_ > 0) {
    REMUDA_ASSIGN(const pool::PoolState state, look());
    const pool::Job* job = state.find(id_);
    if (job && job->state == pool::JobState::running) {
      REMUDA_ASSIGN(const bool is_claimed, claim(state));
      if (is_claimed || id_ == 0) return is_claimed;
      continue;
    }
    if (!job || job->state == pool::JobState::ended) {
      REMUDA_ASSIGN(const auto ended, caretaker_.pool().find(id_));
      return gone_from(ended ? ended->why : "it is not in the pool any more", process::kOwnFailure);
    }
    tell(*job);
    REMUDA_TRY(rest(state));
    for (const SignalNews& news : link_.news())
      if (news.number != SIGUSR1 && news.number != SIGUSR2) return leave(news.number);
    if (link_.gone()) return leave(SIGKILL);
  }
  return false;
}

/// Of many who wait, each looks less often, so that all of them together do not; who is started is woken by a signal.
Result<void> Turn::rest(const pool::PoolState& state) {
  constexpr double kEach_s = 0.005, kMost_s = 2;
  if (looks_after_all_)
    return caretaker_.pool().wait(whom_to_watch(state), spec_.live ? kLiveLook_s : kRecordedLook_s, link_.readable());
  const auto waiting = std::ranges::count(state.jobs, pool::JobState::waiting, &pool::Job::state);
  if (link_.rest(std::min(kMost_s, kEach_s * static_cast<double>(waiting)))) return {};
  return caretaker_.pool().wait(whom_to_watch(state), kTrust_s, link_.readable());
}

Result<pool::PoolState> Turn::look() {
  REMUDA_ASSIGN(pool::PoolState state, caretaker_.pool().read());
  const bool was_first = std::exchange(looks_after_all_, is_first(state));
  const pool::Job* job = state.find(id_);
  if (!job || job->state != pool::JobState::waiting || !(looks_after_all_ || was_first)) return state;
  REMUDA_TRY(caretaker_.tidy());
  const double now_s = monotonic_s();
  if (was_first && now_s - looked_at_s_ >= (spec_.live ? kLiveLook_s : kRecordedLook_s)) {
    looked_at_s_ = now_s;
    if (spec_.live) REMUDA_TRY(caretaker_.look_again());
    REMUDA_TRY(caretaker_.change([](pool::PoolState&) -> Result<void> { return {}; }));
  }
  return caretaker_.pool().read();
}

bool Turn::is_first(const pool::PoolState& state) const {
  const auto first = std::ranges::find_if(state.jobs, [&](const pool::Job& job) {
    return job.state == pool::JobState::waiting && !is_array(job) && pool::lives(caretaker_.folder(), job.keeper);
  });
  return first != state.jobs.end() && first->id == id_;
}

std::vector<process::ProcessId> Turn::whom_to_watch(const pool::PoolState& state) const {
  std::vector<process::ProcessId> keepers;
  for (const pool::Job& job : state.jobs) {
    if (job.state == pool::JobState::ended || job.id == id_ || !pool::lives(caretaker_.folder(), job.keeper)) continue;
    keepers.push_back(job.keeper);
    if (!looks_after_all_ && job.state == pool::JobState::waiting && !is_array(job)) return {job.keeper};
  }
  return keepers;
}

void Turn::tell(const pool::Job& job) {
  if (is_told_ && job.why == told_) return;
  is_told_ = true;
  told_ = job.why;
  link_.tell(Message::Kind::waiting, id_, job.why);
}

Result<bool> Turn::gone_from(const std::string& why, int status) {
  why_ = why;
  status_ = status;
  return false;
}

/// Of these devices, one that must not be used, and why. The process that granted them may have looked at the machine
/// before an error, or begun after it: a driver reports an error only to those that watch at that time.
std::string Turn::ailment_among(const std::vector<std::string>& devices) const {
  const Inventory& inventory = caretaker_.inventory();
  for (const std::string& id : devices)
    if (const Device* device = inventory.find(id))
      if (const auto ailment = place::ailment(inventory, *device))
        return fmt::format("{} {}", device->label(), *ailment);
  return "";
}

/// False where a device is unwell, or a job of another pool was quicker: then the job waits again, or ends if it may
/// not wait.
Result<bool> Turn::claim(const pool::PoolState& state) {
  if (!spec_.live) return true;
  std::vector<std::string> devices;
  for (const pool::Lease& lease : state.leases)
    if (lease.job == id_) devices.push_back(lease.device);
  if (const std::string why = ailment_among(devices); !why.empty()) return give_way(why);
  auto claim = pool::Claim::take(spec_.pool, devices);
  if (claim) {
    claim_ = std::move(*claim);
    return true;
  }
  const pool::NotClaimed& refusal = claim.error();
  if (!refusal.device.empty()) {
    const Device* device = caretaker_.inventory().find(refusal.device);
    return give_way(fmt::format("{} is held by {}", device ? device->label() : refusal.device, refusal.why));
  }
  link_.tell(Message::Kind::note, id_, "other pools cannot see that it holds its devices: " + refusal.why);
  return true;
}

/// The leases end, and the machine is looked at anew before anybody is granted devices: the other pool's claims are
/// seen then.
Result<bool> Turn::give_way(const std::string& why) {
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
  REMUDA_TRY(caretaker_.look_again());
  REMUDA_TRY(caretaker_.change([](pool::PoolState&) -> Result<void> { return {}; }));
  if (spec_.wait) return false;
  id_ = 0;
  return gone_from(why, place::kNotNow);
}

Result<bool> Turn::leave(int signal) {
  REMUDA_TRY(caretaker_.change([&](pool::PoolState& state) -> Result<void> {
    end(state, id_, {.signal = signal, .why = "left the queue"}, {}, wall_s());
    return {};
  }));
  return gone_from("", process::exit_code({0, signal}));
}

}  // namespace remuda::run
