#include "run/keeper.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <functional>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>

#include "base/clock.h"
#include "pool/logs.h"
#include "run/at_end.h"
#include "run/caretaker.h"
#include "run/confining_job.h"
#include "run/pool_retry.h"
#include "run/queue_entry.h"

namespace remuda::run {
namespace {

using Kind = Message::Kind;

/// How long the end of a job waits for the readers of its output, before other jobs start on its devices.
constexpr double kMoment_s = 0.2;

class Keeper {
 public:
  Keeper(const RunSpec& spec, const Inherited& inherited, Caretaker caretaker, FrontLink& link)
      : spec_(spec),
        inherited_(inherited),
        caretaker_(std::move(caretaker)),
        link_(link),
        entry_(spec_, caretaker_, link_),
        run_(spec_, inherited_, caretaker_, link_) {}

  Result<void> run() {
    REMUDA_TRY(entry_.submit());
    id_ = entry_.job();
    for (;;) {
      REMUDA_ASSIGN(const bool is_running, entry_.wait());
      if (!is_running) {
        if (entry_.job() > 0 && !entry_.is_left_waiting()) do_at_end();
        link_.send(Kind::ended, entry_.is_left_waiting() ? 0 : id_, entry_.why(), entry_.status());
        return {};
      }
      spec_.job.time_limit_s = entry_.time_limit_s();
      spec_.grace_s = std::min(spec_.grace_s, entry_.grace_s());
      limit_at_s_ = spec_.job.time_limit_s > 0 ? monotonic_s() + spec_.job.time_limit_s : kNever_s;
      run_.begin({id_, entry_.claims(), limit_at_s_});
      const Outcome outcome = spec_.tasks.empty() ? run_with_restarts() : run_.run_tasks();
      run_.end_sharing();
      if (!(outcome.may_requeue && spec_.can_be_queued_again())) return finish(outcome);
      REMUDA_TRY(queue_again(outcome));
    }
  }

 private:
  /// Frees the devices before other jobs are started, as finish() does: the scheduler decides by their current state.
  /// Stays as long as its front, whether there is an agent or not: a job that is to run again would be lost with it.
  Result<void> queue_again(const Outcome& outcome) {
    link_.send(Kind::note, id_, fmt::format("{}; queued again", outcome.why));
    PoolRetry retry(caretaker_.pool(), link_);
    for (bool is_told = false;;) {
      const auto requeued = caretaker_.apply(pool::Requeue{id_});
      if (requeued) break;
      if (!std::exchange(is_told, true)) tell_in_log("is to be queued again", requeued.error());
      if (link_.gone() || !retry.rest(id_, requeued.error())) return tl::unexpected(requeued.error());
      // Shows whether the front is still there. A request to end the job itself is in the pool.
      (void)link_.take_signals();
    }
    run_.end_sharing();
    return start_others();
  }

  bool wants_restart(const Outcome& outcome, int restarts) const {
    if (!outcome.started || outcome.stopped || outcome.state.ok() || restarts >= spec_.restarts) return false;
    return spec_.restart_on.empty() ||
           std::ranges::find(spec_.restart_on, exit_code(outcome.state)) != spec_.restart_on.end();
  }

  Outcome run_with_restarts() {
    for (int restarts = 0;; ++restarts) {
      Outcome outcome = run_.run_once(restarts);
      if (!wants_restart(outcome, restarts) || !back_off(restarts, outcome)) return outcome;
      (void)caretaker_.apply(pool::CountRestart{id_});
      link_.send(Kind::note, id_,
                 fmt::format("{}; starts again ({} of {})", to_string(outcome.state), restarts + 1, spec_.restarts));
    }
  }

  /// Waits before the next start, longer each time, and until the pool can be read, which has the job's devices; false
  /// when the job is to end instead, or to be queued again.
  bool back_off(int restarts, Outcome& outcome) {
    constexpr double kFirst_s = 1, kLongest_s = 60, kBlind_s = 1;
    const double end_s = monotonic_s() + std::min(kLongest_s, kFirst_s * std::exp2(std::min(restarts, 10)));
    for (;;) {
      const auto found = caretaker_.pool().find(id_);
      if (is_called_off(found, outcome)) return false;
      if (monotonic_s() >= limit_at_s_) {
        queue_again_as(outcome, time_limit_text(spec_));
        return false;
      }
      const double left_s = end_s - monotonic_s();
      if (left_s <= 0 && found) return true;
      const double most_s = std::min(found ? left_s : kBlind_s, limit_at_s_ - monotonic_s());
      if (!found || !caretaker_.pool().wait(id_, {}, most_s, link_.readable())) link_.wait(std::min(kBlind_s, most_s));
    }
  }

  /// Whether a signal or a change of the pool since then, as far as that could be read, asks the job to end, or to be
  /// queued again.
  bool is_called_off(const Result<std::optional<pool::Job>>& found, Outcome& outcome) {
    const auto signals = link_.take_signals();
    bool is_asked_to = link_.gone();
    const pool::Job* job = found && *found ? &**found : nullptr;
    if (found && (!job || job->cancelled)) return true;
    for (const ReceivedSignal& one : signals) {
      if (one.number == SIGUSR1 || one.number == SIGUSR2) continue;  // there is no process to send it to
      is_asked_to = true;
      if (one.number == SIGTERM) queue_again_as(outcome, "was told to stop");
    }
    if (!job) return is_asked_to;
    if (!job->evicted.empty()) queue_again_as(outcome, "was told to end: " + job->evicted);
    if (!job->evicted.empty()) return true;
    if (job->preempted_by == 0) return is_asked_to;
    queue_again_as(outcome, fmt::format("makes room for job {}", job->preempted_by));
    return true;
  }

  static void queue_again_as(Outcome& outcome, std::string why) {
    outcome.may_requeue = true;
    outcome.why = std::move(why);
  }

  /// Records the end and frees the devices before the front is notified, and ahead of all processes that wait in line
  /// for a change. Where the machine is this one, it is read again before other jobs start: the job's processes have
  /// just left its devices.
  Result<void> finish(const Outcome& outcome) {
    std::string why = outcome.why.empty() ? to_string(outcome.state) : outcome.why;
    if (!outcome.memory_trouble.empty()) why += "; " + outcome.memory_trouble;
    const pool::Ending ending{outcome.state.status, outcome.state.signal, why, outcome.memory_peak_bytes, wall_s()};
    const auto record = [&]() -> Result<void> {
      REMUDA_TRY(caretaker_.apply(pool::End{id_, ending}));
      return {};
    };
    const auto recorded = record();
    if (!recorded) link_.send(Kind::note, id_, recorded.error().message);
    run_.end_sharing();  // of two jobs that end at once, each may have left a daemon for the other to stop
    sweep_own_logs();
    const bool is_read = !run_.output() || run_.output()->finish(kMoment_s);
    Result<void> started;
    if (!is_read && recorded) {
      entry_.release_claims();
      started = start_others();
      await_readers();
    }
    if (recorded) do_at_end();
    if (is_read && run_.output() && !run_.output()->loss().empty()) link_.send(Kind::note, id_, run_.output()->loss());
    link_.send(Kind::ended, id_, outcome.memory_trouble.empty() ? outcome.why : why, exit_code(outcome.state));
    if (!recorded) {
      tell_in_log("has ended (" + why + ")", recorded.error());
      return record_later(record);
    }
    return is_read ? start_others() : started;
  }

  /// Once its devices are free, and other jobs have started on them.
  void do_at_end() {
    if (!has_end_to_report(spec_)) return;
    entry_.release_claims();
    if (const auto started = start_others(); !started) link_.send(Kind::note, id_, started.error().message);
    if (const std::string trouble = report_end(caretaker_.pool(), spec_, id_); !trouble.empty())
      link_.send(Kind::note, id_, trouble);
  }

  /// The disk was full or the database busy when the job ended: its user has the result, and this process stays in the
  /// background until the pool has it, too; where it never has, the log does.
  Result<void> record_later(const std::function<Result<void>()>& record) {
    run_.close_output();
    const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing.get(), fd);
    (void)link_.take_signals();  // those were for the job
    REMUDA_TRY(record_for_a_day(record, id_, caretaker_.pool(), link_));
    entry_.release_claims();
    const auto started = start_others();
    (void)report_end(caretaker_.pool(), spec_, id_);
    return started;
  }

  void tell_in_log(const std::string& what, const Error& error) const {
    const auto log = open_log(spec_, id_);
    if (!log || !*log) return;
    const std::string sentence =
        fmt::format("remuda: job {} {}, which cannot be reported to the pool yet: {}; that is tried again\n", id_, what,
                    error.message);
    (void)write_all(log->get(), sentence, "the log");
  }

  void sweep_own_logs() {
    if (!run_.output() || !run_.output()->has_pool_log()) return;
    if (const auto state = caretaker_.pool().read_own()) pool::sweep_logs(spec_.logs, *state);
  }

  /// The job is over and its devices are free; its last output has not been read yet.
  void await_readers() {
    constexpr double kNoteAfter_s = 2;
    double patience_s = kNoteAfter_s;
    while (!run_.output()->finish(patience_s, link_.readable())) {
      for (const ReceivedSignal& signal : link_.take_signals())
        if (signal.number != SIGUSR1 && signal.number != SIGUSR2) return;
      if (link_.gone()) return;
      if (std::exchange(patience_s, kNever_s) == kNoteAfter_s)
        link_.send(Kind::note, id_, "it has ended, and its devices are free; what it wrote last waits to be read");
    }
  }

  Result<void> start_others() {
    if (caretaker_.pool().is_served()) return {};
    REMUDA_ASSIGN(const pool::PoolState state, caretaker_.pool().read());
    if (std::ranges::find(state.jobs, pool::JobState::waiting, &pool::Job::state) == state.jobs.end()) return {};
    if (spec_.live) REMUDA_TRY(caretaker_.read_machine());
    REMUDA_TRY(caretaker_.apply(pool::StartJobs{}));
    return {};
  }

  RunSpec spec_;
  const Inherited inherited_;
  Caretaker caretaker_;
  FrontLink& link_;
  QueueEntry entry_;
  JobRun run_;
  double limit_at_s_ = kNever_s;  ///< of this turn, restarts included; on the steady clock
  int64_t id_ = 0;
};

/// A job that has no access to a device cannot pass it on to another job.
Result<void> check_view(Caretaker& caretaker) {
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read_around(0));
  const auto job = confining_job(state);
  if (!job) return {};
  return failed(fmt::format(
      "this is a part of job {}, which sees only the devices that it was granted: start jobs from outside of it",
      *job));
}

Result<void> keep_within(const RunSpec& spec, const OpenPool& open, FrontLink& link, Inherited inherited) {
  REMUDA_ASSIGN(Caretaker caretaker, open());
  if (!caretaker.pool().is_served()) REMUDA_TRY(check_isolation(spec));
  REMUDA_TRY(check_view(caretaker));
  REMUDA_ASSIGN(inherited.lifeline, caretaker.pool().become_keeper());
  return Keeper(spec, inherited, std::move(caretaker), link).run();
}

}  // namespace

void keep(const RunSpec& spec, const OpenPool& open, Fd front, const Inherited& inherited) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto link = FrontLink::open(std::move(front));
  if (!link) return;
  const auto kept = keep_within(spec, open, *link, inherited);
  if (!kept) link->send(Kind::ended, 0, kept.error().message, status_of_refusal(kept.error()));
}

}  // namespace remuda::run
