#include "agent/holds.h"

#include <algorithm>
#include <csignal>
#include <span>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "confine/cgroup.h"
#include "confine/open_nodes.h"
#include "pool/lifeline.h"
#include "pool/transitions.h"
#include "process/status.h"
#include "process/tree.h"

namespace remuda::agent {
namespace {

constexpr double kSoon_s = 0.02, kLook_s = 1;
/// How soon all processes are looked at again where a job without a cgroup is to end, how many are in a step, and how
/// many of its own are killed in one.
constexpr double kLookSoon_s = 0.1;
constexpr size_t kMostLooks = 500, kMostKilled = 200;
/// For so long the processes of a job are killed by and by: after that it makes new ones as quickly.
constexpr double kPieces_s = 5;
constexpr size_t kMostAtOnce = 8;
/// Ends of keepers that are taken note of in a step: of thousands that end together each takes the kernel a while to
/// let go of, and whoever asks for something meanwhile does not wait for all.
constexpr int kMostEnds = 64;
/// A keeper whose job is over has a few descriptors; one with more is a hostile user's, and others wait meanwhile.
constexpr size_t kMostLooksAtKeeper = 2000;
/// What a keeper is given beyond the time that it is to keep itself; and how long it waits until its word is recorded.
constexpr double kSlack_s = 5, kWordPatience_s = 2;
/// Keepers that have looked for an agent for long do so once a minute.
constexpr double kTold_s = 120;

bool is_there(const std::string& folder) {
  struct stat info{};
  return !folder.empty() && ::stat(folder.c_str(), &info) == 0;
}

/// The other half of the descriptors is for connections (raise_limits() in agent.cc), and some are for looks at /proc.
size_t most_ends() {
  constexpr rlim_t kOthers = 128, kMost = 1 << 20;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  const rlim_t half = std::min(files.rlim_cur, kMost) / 2;
  return half > kOthers ? half - kOthers : 0;
}

}  // namespace

/// find_again() takes those out of the cgroups that are left which are in use.
Holds::Holds(std::string pool)
    : pool_(std::move(pool)),
      ends_(::epoll_create1(EPOLL_CLOEXEC)),
      most_watched_(most_ends()),
      left_(job_cgroups(pool_)) {
  if (!left_.all().empty()) next_s_ = 0;
}

void Holds::watch(int64_t job, Hold& hold) {
  if (watched_ < most_watched_ && is_alive(hold.keeper))
    hold.keeper_end.reset(static_cast<int>(::syscall(SYS_pidfd_open, hold.keeper.pid, 0)));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<uint64_t>(job)}};
  if (hold.keeper_end) ::epoll_ctl(ends_.get(), EPOLL_CTL_ADD, hold.keeper_end.get(), &event);
  if (hold.keeper_end) ++watched_;
  attend(job, hold);
  next_s_ = 0;
}

void Holds::unwatch(int64_t job, Hold& hold) {
  if (hold.keeper_end) --watched_;
  hold.keeper_end.reset();
  attend(job, hold);
}

void Holds::attend(int64_t job, const Hold& hold) {
  if (hold.runs || !hold.keeper_end)
    attended_.insert(job);
  else
    attended_.erase(job);
}

/// The wall clock says how long a job of an agent before this one has run.
void Holds::set_limit(const pool::Job& job, Hold& hold, double now_s) {
  hold.grace_s = std::clamp(job.grace_s, 0.0, kLongestGrace_s);
  if (job.time_limit_s <= 0) return;
  const double left_s = std::clamp(job.started_s + job.time_limit_s - wall_s(), 0.0, job.time_limit_s);
  hold.limit_at_s = now_s + left_s + kSlack_s;
}

void Holds::add(const pool::Job& job) {
  Hold& hold = holds_[job.id];
  hold.keeper = job.keeper;
  watch(job.id, hold);
}

bool Holds::find_again(const pool::Job& job, std::vector<confine::DeviceNode> nodes, double seen_s, double now_s) {
  Hold& hold = holds_[job.id];
  hold.runs = true;
  hold.nodes = std::move(nodes);
  attend(job.id, hold);
  set_limit(job, hold, now_s);
  see(job, now_s);
  const bool is_there_still = job.cgroup.starts_with('/') && is_there(job.cgroup) && left_.take_out(job.cgroup);
  if (is_there_still) {
    hold.cgroup = job.cgroup;
    hold.memory_bytes = job.request.host_memory_bytes;
    hold.further = further_cgroups_of(hold.cgroup);
    for (const std::string& cgroup : hold.further) left_.take_out(cgroup);
  }
  if (hold.cgroup.empty()) {
    process::TreeScan scan;
    while (!scan.advance(kMostLooks)) {  // nobody has asked for anything yet
    }
    take_note(hold, scan, now_s);
  }
  if (hold.cgroup.empty() ? hold.seen.empty() : !has_others(hold)) hold.seen_s = seen_s;
  hold.told_until_s = now_s + kTold_s;
  return is_there_still;
}

pool::RecordConfinement Holds::begin(const pool::Job& job, const std::optional<confine::Withheld>& withheld,
                                     std::vector<confine::DeviceNode> nodes, double now_s) {
  Hold& hold = holds_[job.id];
  hold.runs = true;
  attend(job.id, hold);
  hold.nodes = std::move(nodes);
  set_limit(job, hold, now_s);
  next_s_ = std::min(next_s_, hold.limit_at_s);
  if (job_of(job.keeper) != 0) return {.job = job.id};
  const JobCgroup made = make_job_cgroup(pool_, job.id, job.uid, withheld, {job.cores, job.request.host_memory_bytes});
  obstacle_ = made.folder.empty() ? made.obstacle : "";
  if (made.folder.empty()) {
    next_s_ = 0;
    return {.job = job.id, .host = pool::HostKept::by(made.host)};
  }
  if (!confine::move_into_all(made.all(), job.keeper)) {
    obstacle_ = "processes of its users cannot be moved to another cgroup";
    for (const std::string& cgroup : made.all()) left_.add(cgroup);
    next_s_ = 0;
    return {.job = job.id, .host = {.why = obstacle_}};
  }
  const auto user = process::sole_user_of(job.keeper.pid);  // what has more rights than its user stays where it is
  for (const process::ProcessId& one : process::all_descendants(job.keeper.pid))
    if (user && process::sole_user_of(one.pid) == user && job_of(one) == 0) confine::move_into_all(made.all(), one);
  hold.cgroup = made.folder;
  hold.further = made.further;
  hold.memory_bytes = job.request.host_memory_bytes;
  return {job.id, made.folder, made.devices_enforced, made.files_denied, pool::HostKept::by(made.host)};
}

void Holds::see(const pool::Job& job, double now_s) {
  const auto found = holds_.find(job.id);
  if (found == holds_.end() || !found->second.runs) return;
  Hold& hold = found->second;
  const bool is_asked = job.cancelled || job.preempted_by != 0 || !job.evicted.empty();
  if (!is_asked || hold.is_asked) return;
  hold.is_asked = true;
  hold.grace_s = std::clamp(job.grace_s, 0.0, kLongestGrace_s);
  const std::string why = job.cancelled         ? "was cancelled"
                          : job.evicted.empty() ? "was to make room"
                                                : "was told to end: " + job.evicted;
  hold.kill_why = why + (job.evicted.empty() || job.cancelled ? ", and" : "; it") + " did not end in its grace time";
  hold.kill_at_s = now_s + hold.grace_s + kSlack_s;
  next_s_ = std::min(next_s_, hold.kill_at_s);
  process::send_signal(hold.keeper, SIGCONT);  // a stopped one sees it, too
}

void Holds::say(int64_t job, pool::Operation word, double now_s) {
  const auto found = holds_.find(job);
  if (found == holds_.end()) return;
  if (!found->second.word) found->second.said_at_s = found->second.word_at_s = now_s;
  found->second.word = std::move(word);
  next_s_ = 0;
}

bool Holds::has_word(int64_t job, double now_s) const {
  const auto found = holds_.find(job);
  return found != holds_.end() && found->second.word && now_s < found->second.word_at_s + kWordPatience_s;
}

bool Holds::has_said(int64_t job) const {
  const auto found = holds_.find(job);
  return found != holds_.end() && found->second.word;
}

bool Holds::enter(int64_t job, const process::ProcessId& process) {
  const auto found = holds_.find(job);
  if (found == holds_.end() || !found->second.runs) return false;
  const Hold& hold = found->second;
  return !hold.cgroup.empty() && confine::move_into_all(hold.further, process) &&
         confine::move_into(hold.cgroup, process);
}

int64_t Holds::job_of(const process::ProcessId& process) const {
  const std::string memberships = memberships_of(process);
  const auto found = std::ranges::find_if(attended_, [&](int64_t job) {
    const Hold& hold = holds_.at(job);
    return hold.runs && !hold.cgroup.empty() && is_member(hold.cgroup, memberships);
  });
  return found == attended_.end() ? 0 : *found;
}

bool Holds::runs(int64_t job) const {
  const auto found = holds_.find(job);
  return found != holds_.end() && found->second.runs;
}

void Holds::rest(int64_t job) {
  const auto found = holds_.find(job);
  if (found == holds_.end() || !found->second.runs) return;
  Hold& hold = found->second;
  leave_cgroup(hold);
  hold.runs = hold.is_asked = false;
  attend(job, hold);
  hold.kill_at_s = hold.killed_since_s = hold.limit_at_s = hold.over_s = kNever_s;
  hold.again_s = hold.seen_s = hold.postponed_s = 0;
  hold.kill_why.clear();
  hold.word.reset();
  hold.seen.clear();
  hold.looked_s = -kNever_s;
}

void Holds::forget(int64_t job) {
  const auto found = holds_.find(job);
  if (found == holds_.end()) return;
  leave_cgroup(found->second);
  unwatch(job, found->second);
  attended_.erase(job);
  holds_.erase(found);
}

void Holds::leave_cgroup(Hold& hold) {
  if (hold.cgroup.empty()) return;
  left_.add(std::exchange(hold.cgroup, {}));
  for (std::string& cgroup : hold.further) left_.add(std::move(cgroup));
  hold.further.clear();
  next_s_ = 0;
}

/// Whether a keeper has ended. What is left of many stays readable in fd().
bool Holds::drain_ends() {
  epoll_event events[kMostEnds];
  const int count = ::epoll_wait(ends_.get(), events, kMostEnds, 0);
  for (int i = 0; i < count; ++i)
    if (const auto hold = holds_.find(static_cast<int64_t>(events[i].data.u64)); hold != holds_.end())
      unwatch(hold->first, hold->second);  // the end of a process is reported until then
  return count > 0;
}

/// Why a job has ended of which there is no other word.
std::string Holds::end_of(const Hold& hold) {
  if (!hold.kill_why.empty()) return hold.kill_why;
  const bool is_of_this_boot = hold.keeper.boot_id == process::own_process_id().boot_id;
  return is_of_this_boot ? "the process that kept it is gone" : "the machine was started anew";
}

/// What the cgroup has counted, whatever the keeper says of it, and when it can have ended.
pool::Operation Holds::with_facts(pool::Operation word, const Hold& hold, double now_s) {
  auto* end = std::get_if<pool::End>(&word);
  if (!end) return word;
  const confine::MemoryUse use = confine::memory_use(hold.cgroup, hold.further);
  end->ending.memory_peak_bytes = use.peak_bytes;
  const bool ended_unseen = hold.seen_s > 0 && (hold.word ? hold.said_at_s : now_s) <= hold.told_until_s;
  end->ending.ended_s = ended_unseen ? std::max(end->ending.ended_s, hold.seen_s) : 0;
  const std::string kills = confine::kills_text(use, hold.memory_bytes);
  if (!kills.empty()) end->ending.why += "; " + kills;
  return word;
}

/// Whether processes of the job are left, beside its keeper. Of thousands in a cgroup it looks at one; where those that
/// were listed have ended meanwhile, as thousands do at once, it asks anew who is left.
bool Holds::has_others(const Hold& hold) {
  if (hold.cgroup.empty()) return hold.looked_s < hold.over_s || !hold.seen.empty();
  constexpr size_t kMostGone = 50;
  for (int left = 10;; --left) {
    const std::vector<int> pids = confine::cgroup_pids(hold.cgroup);
    const size_t looks = left > 0 ? std::min(pids.size(), kMostGone) : pids.size();  // where zombies are listed, too
    const bool is_found = std::ranges::any_of(std::span(pids).first(looks), [&](int pid) {
      const auto one = process::process_id(pid);
      return one && one != hold.keeper;
    });
    if (is_found || looks == pids.size()) return is_found;
  }
}

void Holds::take_note(Hold& hold, const process::TreeScan& scan, double begun_s) {
  std::vector<process::ProcessId> roots = std::move(hold.seen);
  roots.push_back(hold.keeper);
  hold.seen = scan.family_of(roots);
  std::erase(hold.seen, hold.keeper);
  hold.looked_s = begun_s;
}

/// For jobs without a cgroup: each second, and sooner where one is to end.
void Holds::look_around(double now_s) {
  std::vector<Hold*> holds;
  double every_s = kLook_s;
  for (const int64_t job : attended_) {
    Hold& hold = holds_.at(job);
    if (!hold.runs || !hold.cgroup.empty()) continue;
    holds.push_back(&hold);
    if (hold.over_s < kNever_s) every_s = kLookSoon_s;
  }
  if (holds.empty()) return scan_.reset();
  if (!scan_ && now_s >= scanned_s_ + every_s) {
    scan_.emplace();
    scanned_s_ = now_s;
  }
  next_s_ = std::min(next_s_, scan_ ? now_s : scanned_s_ + every_s);
  if (!scan_ || !scan_->advance(kMostLooks)) return;
  if (!scan_->has_failed())
    for (Hold* hold : holds) take_note(*hold, *scan_, scanned_s_);
  scan_.reset();
}

void Holds::kill_others(Hold& hold, bool is_kept, double now_s) {
  hold.killed_since_s = std::min(hold.killed_since_s, now_s);
  const Pace pace = now_s < hold.killed_since_s + kPieces_s ? Pace::in_pieces : Pace::at_once;
  if (!hold.cgroup.empty()) return kill_members(hold.cgroup, is_kept ? std::optional(hold.keeper) : std::nullopt, pace);
  size_t looks = pace == Pace::at_once ? hold.seen.size() : kMostKilled;
  std::erase_if(hold.seen, [&](const process::ProcessId& one) {
    if (looks == 0) return false;
    --looks;
    const bool is_gone = !is_alive(one);
    if (!is_gone) process::send_signal(one, SIGKILL);
    return is_gone;
  });
}

std::optional<pool::Operation> Holds::step_one(int64_t job, Hold& hold, double now_s) {
  const bool is_kept = pool::lives(pool_, hold.keeper);
  if (is_kept && !hold.keeper_end) next_s_ = std::min(next_s_, now_s + kLook_s);
  if (!hold.runs) {
    if (is_kept) return std::nullopt;
    return pool::End{job, {.exit_status = pool::kEndedByRemuda, .why = end_of(hold)}};
  }
  if (now_s >= hold.limit_at_s) {
    hold.limit_at_s = kNever_s;
    if (!hold.is_asked) hold.kill_why = "reached its time limit, and did not end in its grace time";
    hold.kill_at_s = std::min(hold.kill_at_s, now_s + hold.grace_s);
  }
  const bool is_late = now_s >= hold.kill_at_s || (hold.word && now_s >= hold.word_at_s + kSlack_s);
  if (is_late && is_kept) process::send_signal(hold.keeper, SIGKILL);
  const bool is_over = !is_kept || hold.word || is_late;
  if (is_over) {
    hold.over_s = std::min(hold.over_s, now_s);
    const bool has_left = has_others(hold);
    if (has_left && (!hold.cgroup.empty() || !hold.seen.empty())) hold.seen_s = 0;  // it has run on
    if (!has_left && (!is_kept || (hold.word && !confine::has_open(hold.keeper, hold.nodes, kMostLooksAtKeeper)))) {
      if (hold.word) return with_facts(*hold.word, hold, now_s);
      return with_facts(pool::End{job, {.exit_status = pool::kEndedByRemuda, .why = end_of(hold)}}, hold, now_s);
    }
    if (has_left) kill_others(hold, is_kept, now_s);
    next_s_ = std::min(next_s_, now_s + kSoon_s);
  }
  next_s_ = std::min({next_s_, std::max(hold.limit_at_s, now_s + kSoon_s), std::max(hold.kill_at_s, now_s + kSoon_s)});
  return std::nullopt;
}

void Holds::postpone(double seconds) {
  for (const int64_t job : attended_) {
    Hold& hold = holds_.at(job);
    if (!hold.word && hold.kill_at_s == kNever_s) continue;
    const double by_s = std::min(seconds, kMostPostponed_s - hold.postponed_s);
    for (double* time_s : {&hold.postponed_s, &hold.kill_at_s, &hold.word_at_s}) *time_s += by_s;
  }
}

std::vector<pool::Operation> Holds::step(double now_s) {
  if (!drain_ends() && now_s < next_s_) return {};
  next_s_ = kNever_s;
  look_around(now_s);
  std::vector<pool::Operation> operations;
  auto next = attended_.upper_bound(stepped_);
  for (size_t left = attended_.size(); left > 0 && operations.size() < kMostAtOnce; --left, ++next) {
    if (next == attended_.end()) next = attended_.begin();
    stepped_ = *next;
    Hold& hold = holds_.at(stepped_);
    auto operation = now_s < hold.again_s ? std::nullopt : step_one(stepped_, hold, now_s);
    if (operation) {
      operations.push_back(std::move(*operation));
      hold.word_at_s = now_s;  // whoever said it waits until it is written
      hold.again_s = now_s + kLook_s;
    }
    if (now_s < hold.again_s) next_s_ = std::min(next_s_, hold.again_s);
  }
  if (operations.size() == kMostAtOnce) next_s_ = now_s;
  left_.sweep();
  if (!left_.all().empty()) next_s_ = std::min(next_s_, now_s + kLook_s);
  return operations;
}

}  // namespace remuda::agent
