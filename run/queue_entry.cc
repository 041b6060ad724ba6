#include "run/queue_entry.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.h"
#include "place/health.h"
#include "place/place.h"
#include "pool/logs.h"
#include "process/spawn.h"

namespace remuda::run {
namespace {

/// For so long a machine may be read before the scheduler looks at a job.
constexpr double kFirstLook_s = 1;

/// Whether an agent may make devices that are not there: then it knows what there can be.
bool may_come(Caretaker& caretaker) {
  return caretaker.pool().is_served() && std::ranges::any_of(caretaker.inventory().devices, [](const Device& device) {
           return !device.offers.value_or({}).empty();
         });
}

}  // namespace

Result<void> QueueEntry::submit() {
  REMUDA_ASSIGN(const place::Answer answer, place::place(place::Layout(caretaker_.inventory()), spec_.job.request, {}));
  const auto* refusal = std::get_if<place::Refusal>(&answer);
  if (refusal && refusal->never && !may_come(caretaker_)) {
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
  REMUDA_TRY(caretaker_.tidy());
  if (spec_.log_only && spec_.job.array == 0) {
    REMUDA_ASSIGN(const pool::PoolState state, caretaker_.pool().read_own());
    sweep_logs(spec_.logs, state);
  }
  return enter();
}

/// The whole change is undone where the job would have to wait but may not.
Result<bool> QueueEntry::enter() {
  if (spec_.takes_over != 0) {
    REMUDA_TRY(caretaker_.apply(pool::TakeOver{spec_.takes_over, process::own_process_id()}));
    id_ = spec_.takes_over;
    return true;
  }
  pool::Submit asked{.job = spec_.job, .waits = spec_.wait, .log_folder = spec_.log_only ? spec_.logs : ""};
  asked.job.keeper = process::own_process_id();
  asked.job.grace_s = spec_.grace_s;
  const auto entered = caretaker_.apply(asked);
  if (!entered && entered.error().kind != ErrorKind::not_now) return tl::unexpected(entered.error());
  if (entered) {
    id_ = entered->job;
  } else {
    status_ = place::kNotNow;
    why_ = entered.error().message;
  }
  return entered.has_value();
}

Result<bool> QueueEntry::wait() {
  claim_.reset();
  entered_at_s_ = monotonic_s();
  has_waited_ = false;
  while (id_ > 0) {
    const Result<Step> step = wait_once();
    if (step) {
      retry_.reset();
      has_run_ = has_run_ || *step == Step::runs;
      if (*step != Step::waits) return *step == Step::runs;
    } else if (!retry_.rest(id_, step.error())) {
      return tl::unexpected(step.error());
    }
    for (const ReceivedSignal& signal : link_.take_signals())
      if (signal.number != SIGUSR1 && signal.number != SIGUSR2) return leave(signal.number);
    if (link_.gone()) return leave(SIGKILL);
    if (may_leave()) return leave(0);
  }
  return false;
}

/// Not where this process knows what the next would not: the tasks, whose file may change, or how often the job was
/// restarted. Nor if the agent has started it: a job that cannot use what it is granted would be started again and
/// again.
bool QueueEntry::may_leave() const {
  return link_.is_kept() && outlives_keeper_ && spec_.tasks.empty() && spec_.takes_over == 0 && !has_run_;
}

Result<QueueEntry::Step> QueueEntry::wait_once() {
  REMUDA_ASSIGN(const pool::PoolState state, caretaker_.pool().attend(id_));
  const pool::Job* job = state.find(id_);
  if (job) {
    time_limit_s_ = job->time_limit_s;
    grace_s_ = job->grace_s;
    outlives_keeper_ = job->outlives_keeper;
  }
  if (job && job->state == pool::JobState::running) return claim(state);
  if (!job || job->state == pool::JobState::ended) {
    REMUDA_ASSIGN(const auto ended, caretaker_.pool().find(id_));
    why_ = ended ? ended->why : "it is not in the pool any more";
    status_ = process::kOwnFailure;
    return Step::is_over;
  }
  if (job->cancelled) {  // while it had no keeper
    REMUDA_TRY(caretaker_.apply(pool::End{id_, {.exit_status = pool::kEndedByRemuda, .why = job->why}}));
    return Step::waits;
  }
  has_waited_ = true;
  pool::Access& pool = caretaker_.pool();
  REMUDA_TRY(report_waiting(*job) ? pool.rest(id_, link_.readable())
                                  : pool.wait(id_, {}, kFirstLook_s, link_.readable()));
  return Step::waits;
}

/// False as long as it is too soon: before the scheduler has looked at the job, nobody knows whether it has to wait.
bool QueueEntry::report_waiting(const pool::Job& job) {
  if (!has_reported_ && job.why.empty() && monotonic_s() < entered_at_s_ + kFirstLook_s) return false;
  if (has_reported_ && job.why == reported_) return true;
  has_reported_ = true;
  reported_ = job.why;
  link_.send(Message::Kind::waiting, id_, job.why);
  return true;
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
  auto claim = pool::Claim::take(spec_.pool, devices, caretaker_.pool().others_claims());
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
  REMUDA_TRY(caretaker_.apply(pool::GiveWay{id_, why, spec_.wait}));
  REMUDA_TRY(caretaker_.read_machine());
  REMUDA_TRY(caretaker_.apply(pool::StartJobs{}));
  if (spec_.wait) return Step::waits;
  id_ = 0;
  why_ = why;
  status_ = place::kNotNow;
  return Step::is_over;
}

/// A job that outlives its keeper ends by `remuda cancel`, and not with this process, as at the end of a session.
Result<bool> QueueEntry::leave(int signal) {
  status_ = process::exit_code({0, signal});
  if (outlives_keeper_) {
    is_left_waiting_ = true;
    return false;
  }
  REMUDA_TRY(caretaker_.apply(pool::End{id_, {.signal = signal, .why = "left the queue"}}));
  REMUDA_TRY(caretaker_.apply(pool::StartJobs{}));
  return false;
}

}  // namespace remuda::run
