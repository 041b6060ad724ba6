#include "run/adopt.h"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "confine/confinement.h"
#include "confine/open_nodes.h"
#include "process/affinity.h"
#include "process/status.h"
#include "process/tree.h"
#include "process/user_name.h"
#include "run/idle_response.h"
#include "run/job_environment.h"
#include "run/job_monitor.h"
#include "run/keeper_for.h"
#include "run/pool_retry.h"
#include "run/queue_entry.h"

namespace remuda::run {
namespace {

using Kind = Message::Kind;

/// Without this process and its front, which may be among its descendants.
std::vector<process::ProcessId> others_of(const process::ProcessId& process) {
  std::vector<process::ProcessId> family = process::family_of(process, static_cast<int>(::getuid()));
  std::erase_if(family, [](const auto& one) { return one.pid == ::getpid() || one.pid == ::getppid(); });
  return family;
}

class AdoptKeeper {
 public:
  AdoptKeeper(const RunSpec& spec, const process::ProcessId& process, Caretaker caretaker, FrontLink& link)
      : spec_(spec), process_(process), caretaker_(std::move(caretaker)), link_(link) {}

  Result<void> run() {
    QueueEntry turn(spec_, caretaker_, link_);
    REMUDA_TRY(turn.submit());
    id_ = turn.job();
    REMUDA_ASSIGN(const bool is_granted, turn.wait());
    if (!is_granted) {
      link_.send(Kind::ended, id_, turn.why(), turn.status());
      return {};
    }
    spec_.job.time_limit_s = turn.time_limit_s();  // a policy may have given one
    if (turn.time_limit_s() > 0) limit_at_s_ = monotonic_s() + turn.time_limit_s();
    auto taken = take();
    if (!taken) why_ = taken.error().message;
    if (taken) stay();
    REMUDA_TRY(give_back());
    return taken;
  }

 private:
  Result<void> take() {
    REMUDA_ASSIGN(const pool::PoolState state, caretaker_.pool().read_around(id_));
    const Inventory& inventory = caretaker_.inventory();
    if (const std::string why = missing_device(state, id_, inventory); !why.empty()) return failed(why);
    const std::vector<std::string> devices = devices_of(state, id_, inventory);
    const pool::Job* job = state.find(id_);
    cgroup_ = job && caretaker_.pool().is_served() ? job->cgroup : "";
    REMUDA_TRY(check_adoptable(process_, inventory, spec_.live));
    if (!caretaker_.pool().is_served()) REMUDA_TRY(make_cgroup(devices, job ? job->cores : std::vector<int>()));
    if (!cgroup_.empty()) REMUDA_TRY(enter_cgroup());
    if (spec_.live && job && !job->cores.empty())
      for (const process::ProcessId& one : others_of(process_)) process::bind(one.pid, job->cores);
    REMUDA_TRY(leave_streams());
    link_.send(Kind::started, id_, joined_devices_text(inventory, devices));
    return {};
  }

  /// One of this keeper's own. Where none can be made, that is recorded, and nothing keeps the process.
  Result<void> make_cgroup(const std::vector<std::string>& devices, const std::vector<int>& cores) {
    std::optional<confine::Withheld> withheld;
    if (spec_.live) withheld = confine::withheld_nodes(caretaker_.inventory(), devices);
    confinement_.emplace(
        confine::Confinement::make(spec_.pool, id_, withheld, {cores, spec_.job.request.host_memory_bytes}));
    const confine::Confined& how = confinement_->how();
    cgroup_ = confinement_->folder();
    REMUDA_TRY(caretaker_.apply(pool::RecordProcesses{id_, {process_}}));
    REMUDA_TRY(caretaker_.apply(
        pool::RecordConfinement{id_, cgroup_, how.devices, how.files_denied, pool::HostKept::by(how.host)}));
    return {};
  }

  /// What a user may not do is no error: the process holds its devices all the same.
  Result<void> enter_cgroup() {
    auto brought = caretaker_.pool().bring(id_, process_);
    if (brought || caretaker_.pool().is_served()) return brought;
    confinement_.reset();
    cgroup_.clear();
    REMUDA_TRY(caretaker_.apply(pool::RecordConfinement{id_, "", false, 0, {.why = brought.error().message}}));
    return {};
  }

  std::vector<process::ProcessId> left() const {
    std::vector<process::ProcessId> left;
    if (!cgroup_.empty()) left = confine::cgroup_members(cgroup_);
    std::erase_if(left, [](const process::ProcessId& one) { return one.pid == ::getpid(); });
    if (is_alive(process_) && std::ranges::find(left, process_) == left.end()) left.push_back(process_);
    return left;
  }

  void ask_to_end(const std::string& why) {
    if (kill_at_s_ < kNever_s) return;
    why_ = why;
    kill_at_s_ = monotonic_s() + spec_.grace_s;
    process::send_signal(process_, spec_.stop_signal);
    process::send_signal(process_, SIGCONT);
  }

  /// Until the process has ended, and all that the cgroup holds.
  void stay() {
    constexpr double kLongest_s = 3600, kBlind_s = 1, kKillAgain_s = 0.2;
    IdleResponse idle(spec_, id_, link_);
    for (std::vector<process::ProcessId> left = this->left(); !left.empty(); left = this->left()) {
      for (const ReceivedSignal& signal : link_.take_signals())
        if (signal.number != SIGUSR1 && signal.number != SIGUSR2) ask_to_end("its keeper was told to end");
      const auto job = caretaker_.pool().find(id_);
      if (job && (!*job || (*job)->cancelled)) ask_to_end("was cancelled");
      if (job && *job) idle.take((*job)->idle, [&] { return left; });
      if (job && *job && !(*job)->evicted.empty()) ask_to_end("was told to end: " + (*job)->evicted);
      if (monotonic_s() >= limit_at_s_) ask_to_end(time_limit_text(spec_));
      if (monotonic_s() >= kill_at_s_) {
        for (const process::ProcessId& one : left) process::send_signal(one, SIGKILL);
        kill_at_s_ = monotonic_s() + kKillAgain_s;
      }
      const double until_s = std::min({limit_at_s_, kill_at_s_, monotonic_s() + kLongest_s});
      const double left_s = std::max(0.0, until_s - monotonic_s());
      if (!job || !caretaker_.pool().wait(id_, left, left_s, link_.readable())) link_.wait(std::min(left_s, kBlind_s));
    }
  }

  /// Frees the devices first; then reads the machine again, and starts other jobs. What nobody here knows to have ended
  /// well counts as not: other jobs may wait for that.
  Result<void> give_back() {
    pool::Ending ending{.exit_status = pool::kEndedByRemuda, .why = why_};
    if (confinement_) ending.memory_peak_bytes = confinement_->memory().peak_bytes;
    const auto record = [&]() -> Result<void> {
      REMUDA_TRY(caretaker_.apply(pool::End{id_, ending}));
      return {};
    };
    REMUDA_TRY(record_for_a_day(record, id_, caretaker_.pool(), link_));
    confinement_.reset();
    if (caretaker_.pool().is_served()) return {};
    REMUDA_TRY(caretaker_.read_machine());
    REMUDA_TRY(caretaker_.apply(pool::StartJobs{}));
    return {};
  }

  RunSpec spec_;
  const process::ProcessId process_;
  Caretaker caretaker_;
  FrontLink& link_;
  std::optional<confine::Confinement> confinement_;      ///< where no agent has made one
  std::string cgroup_;                                   ///< empty: none holds it
  double limit_at_s_ = kNever_s, kill_at_s_ = kNever_s;  ///< on the steady clock
  std::string why_ = "its process has ended; how, only its parent was told";
  int64_t id_ = 0;
};

}  // namespace

Result<void> check_adoptable(const process::ProcessId& process, const Inventory& inventory, bool live) {
  const auto user = process::sole_user_of(process.pid);
  if (!is_alive(process)) return usage_error(fmt::format("there is no process {}", process.pid));
  if (!user) return usage_error(fmt::format("process {} has the rights of several users", process.pid));
  if (*user != static_cast<int>(::getuid()))
    return usage_error(fmt::format("process {} belongs to {}, who alone may lease devices for it", process.pid,
                                   process::user_name(*user)));
  const std::string mark = fmt::format("{}=", env::job.name);
  for (const std::string& entry : process::environ_of(process.pid).value_or(std::vector<std::string>()))
    if (entry.starts_with(mark))
      return usage_error(fmt::format("process {} is a part of job {} already", process.pid, entry.substr(mark.size())));
  const std::vector<confine::DeviceNode> nodes =
      live ? confine::withheld_nodes(inventory, {}).nodes : std::vector<confine::DeviceNode>();
  const std::vector<process::ProcessId> others = others_of(process);
  for (const process::ProcessId& one : others) {
    for (const Device& device : inventory.devices)
      for (const Process& user_of : device.status.processes.value_or({}))
        if (user_of.pid == one.pid)
          return usage_error(fmt::format(
              "process {} has opened {} already; only one that has opened no device can be adopted: start it anew with "
              "`remuda run`",
              one.pid, device.label()));
  }
  return confine::check_unopened(others, nodes);
}

Result<int> adopt(const RunSpec& spec, const OpenPool& open, const process::ProcessId& process, const Report& report) {
  return run_keeper_for(
      {process, "the process"}, open,
      [&](Caretaker caretaker, FrontLink& link) {
        return AdoptKeeper(spec, process, std::move(caretaker), link).run();
      },
      report);
}

}  // namespace remuda::run
