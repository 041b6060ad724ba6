#include "run/watch.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.h"

namespace remuda::run {
namespace {

constexpr double kKillPatience_s = 5, kKillAgain_s = 1, kNoteAfter_s = 1, kLongestPause_s = 3600, kRest_s = 0.1,
                 kLongestBlind_s = 1;
/// Who tells a whole cgroup to stop tells the front and the keeper: one word, come two ways.
constexpr double kSameWord_s = 1;

std::string pids_text(const std::vector<process::ProcessId>& processes) {
  std::string text;
  for (const process::ProcessId& process : processes)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", process.pid);
  return text;
}

}  // namespace

Watch::Watch(const RunSpec& spec, int64_t job, pool::Pool& pool, FrontLink& link,
             const confine::Confinement& confinement, bool restart)
    : spec_(spec),
      job_(job),
      pool_(pool),
      link_(link),
      confinement_(confinement),
      restart_(restart),
      limit_at_s_(spec.job.time_limit_s > 0 ? monotonic_s() + spec.job.time_limit_s : kNever_s),
      kill_at_s_(kNever_s),
      note_at_s_(kNever_s) {}

Outcome Watch::run(const std::vector<process::ProcessSpec>& processes) { return start(processes) ? watch() : outcome_; }

Outcome Watch::run(TaskRun& tasks) {
  tasks_ = &tasks;
  tasks_->step(crew_);
  record_processes();  // of the first ones; those that follow are found by what they carry
  return watch();
}

Outcome Watch::watch() {
  for (;;) {
    for (const SignalNews& news : link_.news()) take(news);
    crew_.reap();
    if (tasks_) tasks_->step(crew_);
    if (crew_.all_gone()) break;
    look_at_members();
    look_at_pool();
    look_at_clock();
    pause();
  }
  if (spec_.can_be_queued_again()) hear_what_ended_it();
  outcome_.state = result().value_or(process::ExitState{process::kOwnFailure, 0});
  return outcome_;
}

void Watch::hear_what_ended_it() {
  constexpr double kSameMoment_s = 0.2;
  const double end_s = monotonic_s() + kSameMoment_s;
  while (!outcome_.stopped && !link_.gone() && monotonic_s() < end_s) {
    link_.rest(end_s - monotonic_s());
    for (const SignalNews& news : link_.news()) take(news);
  }
}

bool Watch::start(const std::vector<process::ProcessSpec>& processes) {
  for (const process::ProcessSpec& process : processes) {
    const auto started = crew_.add(process);
    if (started) continue;
    crew_.kill(kKillPatience_s);
    outcome_ = {{started.error().status, 0}, started.error().sentence, false};
    return false;
  }
  record_processes();
  return true;
}

void Watch::record_processes() {
  const auto recorded = pool_.change([&](pool::PoolState& state) -> Result<void> {
    if (pool::Job* job = state.find(job_)) job->processes = crew_.processes();
    return {};
  });
  if (!recorded) link_.tell(Message::Kind::note, job_, recorded.error().message);
}

void Watch::take(const SignalNews& news) {
  const bool ends_all = tasks_ && (news.number == SIGINT || news.number == SIGHUP || news.number == SIGQUIT);
  if (news.number != SIGTERM && !ends_all) {
    if (!news.from_terminal) crew_.signal(news.number);
  } else if (outcome_.stopped) {
    if (monotonic_s() - told_at_s_ < kSameWord_s) return;
    outcome_.may_requeue = false;
    kill_at_s_ = monotonic_s();
  } else {
    told_at_s_ = monotonic_s();
    stop("was told to stop", news.number == SIGTERM, spec_.grace_s);
  }
}

void Watch::look_at_pool() {
  if (link_.gone() && !abandoned_) {
    abandoned_ = true;
    stop("ended with the `remuda run` that it belonged to", false, 0);
  }
  const auto state = pool_.read();
  if (!state || outcome_.stopped) return;
  const pool::Job* job = state->find(job_);
  if (!job || job->cancelled)
    stop("was cancelled", false, spec_.grace_s);
  else if (job->preempted_by != 0)
    stop(fmt::format("makes room for job {}", job->preempted_by), true, spec_.grace_s);
}

void Watch::look_at_members() {
  const auto result = this->result();
  if (!result) return;
  if (crew_.running() > 0) {
    if (!result->ok() && kill_at_s_ == kNever_s) {
      stop("", false, spec_.grace_s);
      outcome_.stopped = false;  // it failed by itself
    }
    return;
  }
  if (restart_ && !result->ok() && !outcome_.stopped) kill_at_s_ = std::min(kill_at_s_, monotonic_s());
  if (note_at_s_ == kNever_s) note_at_s_ = monotonic_s() + kNoteAfter_s;
}

void Watch::look_at_clock() {
  const double now = monotonic_s();
  if (now >= limit_at_s_) {
    limit_at_s_ = kNever_s;
    if (!outcome_.stopped)
      stop(fmt::format("reached its time limit of {:g} s", spec_.job.time_limit_s), true, spec_.grace_s);
  }
  if (monotonic_s() >= kill_at_s_) kill();
  if (now >= note_at_s_) {
    note_at_s_ = std::numeric_limits<double>::max();
    link_.tell(Message::Kind::note, job_, "its command has ended; waiting for the processes that it left behind");
  }
}

void Watch::stop(const std::string& why, bool may_requeue, double grace_s) {
  outcome_.stopped = true;
  outcome_.may_requeue = may_requeue;
  outcome_.why = why;
  if (tasks_) tasks_->close();
  kill_at_s_ = std::min(kill_at_s_, monotonic_s() + grace_s);
  if (grace_s <= 0) return;
  crew_.signal(spec_.stop_signal);
  crew_.signal(SIGCONT);  // a stopped job could not hear it
}

void Watch::kill() {
  kill_at_s_ = monotonic_s() + kKillAgain_s;
  confinement_.kill();
  const auto left = crew_.kill(kKillPatience_s);
  if (!left.empty())
    link_.tell(Message::Kind::note, job_, fmt::format("the kernel does not let go of process {}", pids_text(left)));
}

void Watch::pause() {
  if (crew_.all_gone()) return;
  const double until_s = std::min(
      {limit_at_s_, kill_at_s_, note_at_s_, monotonic_s() + kLongestPause_s, tasks_ ? tasks_->wake_at_s() : kNever_s});
  const double seconds = std::max(0.0, until_s - monotonic_s());
  // The pool is read after each of its changes, so rather not after each one; and where it cannot be read, the job goes
  // on.
  if (link_.rest(std::min(seconds, kRest_s))) return;
  if (!pool_.wait({}, std::max(0.0, seconds - kRest_s), link_.readable()))
    link_.rest(std::min(seconds, kLongestBlind_s));
}

}  // namespace remuda::run
