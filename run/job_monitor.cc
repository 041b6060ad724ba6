#include "run/job_monitor.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "confine/cgroup.h"
#include "process/stat.h"
#include "process/tree.h"

namespace remuda::run {
namespace {

constexpr double kKillPatience_s = 5, kKillAgain_s = 1, kNoteAfter_s = 1, kLongestPause_s = 3600, kLogPause_s = 10,
                 kRest_s = 0.1, kLongestBlind_s = 1;
/// A SIGTERM to a whole cgroup reaches both the front, which forwards it, and the keeper: within this time they count
/// as one.
constexpr double kSameWord_s = 1;

std::string pids_text(const std::vector<process::ProcessId>& processes) {
  std::string text;
  for (const process::ProcessId& process : processes)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", process.pid);
  return text;
}

}  // namespace

std::string time_limit_text(const RunSpec& spec) {
  return fmt::format("reached its time limit of {:g} s", spec.job.time_limit_s);
}

JobMonitor::JobMonitor(const RunSpec& spec, Job job, pool::Access& pool, FrontLink& link,
                       const confine::Confinement& confinement)
    : spec_(spec),
      job_(std::move(job)),
      terminal_(process::Terminal::of_caller()),
      pool_(pool),
      link_(link),
      confinement_(confinement),
      idle_(spec_, job_.id, link_),
      limit_at_s_(job_.limit_at_s),
      signal_all_at_s_(kNever_s),
      kill_at_s_(kNever_s),
      note_at_s_(kNever_s),
      board_at_s_(job_.board ? 0 : kNever_s) {}

Outcome JobMonitor::run(const std::vector<process::ProcessSpec>& processes) {
  return start(processes) ? watch() : outcome_;
}

Outcome JobMonitor::run(TaskRun& tasks) {
  tasks_ = &tasks;
  tasks_->step(processes_);
  record_processes();  // of the first tasks; those that follow are found by their environment
  return watch();
}

Outcome JobMonitor::watch() {
  for (;;) {
    for (const ReceivedSignal& signal : link_.take_signals()) take(signal);
    processes_.reap();
    if (tasks_) tasks_->step(processes_);
    if (processes_.all_gone()) break;
    look_at_members();
    look_at_pool();
    look_at_clock();
    look_at_board();
    pause();
  }
  if (spec_.can_be_queued_again()) take_late_signals();
  note_memory();
  end_what_entered();
  outcome_.state = result().value_or(process::ExitState{process::kOwnFailure, 0});
  return outcome_;
}

/// While the cgroup is there. Where the pool holds the job, that has counted it.
void JobMonitor::note_memory() {
  if (pool_.is_served()) return;
  const confine::MemoryUse use = confinement_.memory();
  outcome_.memory_peak_bytes = use.peak_bytes;
  outcome_.memory_trouble = confine::kills_text(use, spec_.job.request.host_memory_bytes);
}

/// What has come into the job's cgroup from outside (pool::Access::enter()), and may do so until that is removed. A
/// daemon that serves other jobs, too, stays.
void JobMonitor::end_what_entered() const {
  const std::string cgroup = confinement_.folder();
  if (cgroup.empty()) return;
  const auto find = [&] {
    std::vector<process::ProcessId> members = confine::cgroup_members(cgroup);
    std::erase_if(members, [](const process::ProcessId& one) { return process::is_daemon(one.pid); });
    return members;
  };
  const double end_s = monotonic_s() + kKillPatience_s;
  do {
    process::kill_all(find, kKillPatience_s);
  } while (!confine::remove_cgroup(cgroup) && !find().empty() && monotonic_s() < end_s);
}

void JobMonitor::take_late_signals() {
  constexpr double kSameMoment_s = 0.2;
  const double end_s = monotonic_s() + kSameMoment_s;
  while (!outcome_.stopped && !link_.gone() && monotonic_s() < end_s) {
    link_.wait(end_s - monotonic_s());
    for (const ReceivedSignal& signal : link_.take_signals()) take(signal);
  }
}

bool JobMonitor::start(const std::vector<process::ProcessSpec>& processes) {
  for (const process::ProcessSpec& process : processes) {
    const auto started = processes_.add(process);
    if (started) continue;
    processes_.kill(kKillPatience_s);
    outcome_ = {{started.error().status, 0}, started.error().sentence, false};
    return false;
  }
  record_processes();
  return true;
}

void JobMonitor::record_processes() {
  const auto recorded = pool_.apply(pool::RecordProcesses{job_.id, processes_.processes()});
  if (!recorded) link_.send(Message::Kind::note, job_.id, recorded.error().message);
}

void JobMonitor::take(const ReceivedSignal& signal) {
  if (signal.number == SIGHUP && signal.from_terminal) hung_up_ = true;
  const bool ends_all = (tasks_ || command_has_ended()) &&
                        (signal.number == SIGINT || signal.number == SIGHUP || signal.number == SIGQUIT);
  if (signal.number != SIGTERM && !ends_all) {
    if (!signal.from_terminal) processes_.signal(signal.number);
  } else if (outcome_.stopped) {
    if (monotonic_s() - asked_to_end_at_s_ < kSameWord_s) return;
    outcome_.may_requeue = false;
    kill_at_s_ = monotonic_s();
  } else {
    asked_to_end_at_s_ = monotonic_s();
    const bool has_left_some = command_has_ended() && !processes_.all_gone() && !tasks_;
    const bool is_done = has_left_some && result()->ok();
    stop(has_left_some ? "what it left behind was ended" : "was told to stop", signal.number == SIGTERM && !is_done,
         spec_.grace_s, ends_all && tasks_ ? signal.number : spec_.stop_signal);
  }
}

void JobMonitor::look_at_pool() {
  if (link_.gone() && !front_loss_handled_) {
    front_loss_handled_ = true;
    stop("ended with the `remuda run` that it belonged to", false, 0, spec_.stop_signal);
  }
  const auto job = pool_.find(job_.id);
  if (!job || outcome_.stopped) return;
  if (*job) idle_.take((*job)->idle, [] { return process::descendants(::getpid()); });
  if (!*job || (*job)->cancelled)
    stop("was cancelled", false, spec_.grace_s, spec_.stop_signal);
  else if ((*job)->preempted_by != 0)
    stop(fmt::format("makes room for job {}", (*job)->preempted_by), true, spec_.grace_s, spec_.stop_signal);
  else if (!(*job)->evicted.empty())
    evict(**job);
}

/// One whose devices are idle has had its time for a checkpoint.
void JobMonitor::evict(const pool::Job& job) {
  constexpr int kNoSignal = 0;
  const bool may_write = spec_.checkpoint_signal > 0 && job.idle.step != pool::IdleStep::released;
  const bool writes = may_write && signal_handlers(process::descendants(::getpid()), spec_.checkpoint_signal) > 0;
  stop("was told to end: " + job.evicted, true, spec_.grace_s, writes ? kNoSignal : spec_.stop_signal);
}

void JobMonitor::look_at_members() {
  const auto result = this->result();
  if (!result) return;
  if (processes_.running() > 0) {
    if (!result->ok() && kill_at_s_ == kNever_s) {
      stop("", false, spec_.grace_s, spec_.stop_signal);
      outcome_.stopped = false;  // it failed by itself
    }
    return;
  }
  if (job_.restart && !result->ok() && !outcome_.stopped) kill_at_s_ = std::min(kill_at_s_, monotonic_s());
  if ((hung_up_ || terminal_.is_closed()) && !outcome_.stopped) take({SIGHUP});
  if (note_at_s_ == kNever_s) note_at_s_ = monotonic_s() + kNoteAfter_s;
}

/// What cannot be reported now is reported next time.
void JobMonitor::look_at_board() {
  if (monotonic_s() < board_at_s_) return;
  board_at_s_ = monotonic_s() + RunBoard::kLook_s;
  if (const auto notice = job_.board->read()) (void)pool_.apply(pool::RecordRun{job_.id, *notice});
}

void JobMonitor::look_at_clock() {
  const double now = monotonic_s();
  if (job_.output) job_.output->bound_log();
  if (now >= limit_at_s_) {
    limit_at_s_ = kNever_s;
    if (!outcome_.stopped) stop(time_limit_text(spec_), true, spec_.grace_s, spec_.stop_signal);
  }
  if (now >= signal_all_at_s_) {
    signal_all_at_s_ = kNever_s;
    processes_.signal_all(spec_.stop_signal);
    processes_.signal_all(SIGCONT);
  }
  if (monotonic_s() >= kill_at_s_) kill();
  if (now >= note_at_s_) {
    note_at_s_ = std::numeric_limits<double>::max();
    if (!outcome_.stopped) name_those_left();
  }
}

void JobMonitor::name_those_left() const {
  const auto left = process::descendants(::getpid());
  if (left.empty()) return;
  terminal_.give_to(job_.group, left);  // so that Ctrl-C reaches this process group again
  const auto first = process::process_stat(left.front().pid);
  const std::string who = fmt::format("{} (pid {})", first ? printable(first->name) : "a process", left.front().pid);
  const std::string others =
      left.size() == 1 ? " still holds" : fmt::format(" and {} more still hold", left.size() - 1);
  const std::string end = terminal_.closing() >= 0 ? "Ctrl-C" : fmt::format("remuda cancel {}", job_.id);
  link_.send(Message::Kind::note, job_.id,
             fmt::format("{}{} {}; {} ends {}", who, others, job_.devices, end, left.size() == 1 ? "it" : "them"));
}

void JobMonitor::stop(const std::string& why, bool may_requeue, double grace_s, int signal) {
  outcome_.stopped = true;
  outcome_.may_requeue = may_requeue;
  outcome_.why = why;
  if (tasks_) tasks_->close();
  const double now_s = monotonic_s();
  kill_at_s_ = std::min(kill_at_s_, now_s + grace_s);
  if (grace_s <= 0) return;
  if (command_has_ended()) processes_.signal_all(SIGTERM);  // there is no checkpoint to wait for
  signal_all_at_s_ = now_s + grace_s / 2;
  processes_.signal(signal);
  processes_.signal(SIGCONT);  // a stopped job could not handle the signal
}

void JobMonitor::kill() {
  kill_at_s_ = monotonic_s() + kKillAgain_s;
  confinement_.kill();
  const auto left = processes_.kill(kKillPatience_s);
  if (!left.empty())
    link_.send(Message::Kind::note, job_.id, fmt::format("the kernel does not let go of process {}", pids_text(left)));
}

void JobMonitor::pause() {
  if (processes_.all_gone()) return;
  const double longest_s = job_.output && job_.output->has_pool_log() ? kLogPause_s : kLongestPause_s;
  const double until_s = std::min({limit_at_s_, signal_all_at_s_, kill_at_s_, note_at_s_, board_at_s_,
                                   monotonic_s() + longest_s, tasks_ ? tasks_->wake_at_s() : kNever_s});
  const double seconds = std::max(0.0, until_s - monotonic_s());
  std::vector<int> wakers = link_.readable();
  if (terminal_.closing() >= 0 && command_has_ended() && !outcome_.stopped) wakers.push_back(terminal_.closing());
  // A wait that follows each change of the pool would read it too often, so this rests first. Where it cannot be read,
  // the job goes on.
  if (link_.wait(std::min(seconds, kRest_s))) return;
  if (!pool_.wait(job_.id, {}, std::max(0.0, seconds - kRest_s), wakers))
    link_.wait(std::min(seconds, kLongestBlind_s));
}

}  // namespace remuda::run
