#include "run/keeper.h"

#include <algorithm>
#include <cmath>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "confine/confinement.h"
#include "confine/nearest.h"
#include "pool/lifeline.h"
#include "pool/logs.h"
#include "run/caretaker.h"
#include "run/job_environment.h"
#include "run/job_output.h"
#include "run/pool_retry.h"
#include "run/turn.h"
#include "run/watch.h"
#include "share/job_sharing.h"
#include "workers/rendezvous.h"

namespace remuda::run {
namespace {

using Kind = Message::Kind;

/// So that all ranks together have as many threads as there are CPUs for them.
int threads_of_each(size_t ranks) { return std::max(1, static_cast<int>(process::allowed_cores().size() / ranks)); }

std::string cannot_isolate(const confine::Confined& how) {
  return fmt::format("the job cannot be kept from devices that it is not granted: {}", how.obstacle);
}

/// How long the end of a job waits for the readers of its output, before other jobs start on its devices.
constexpr double kMoment_s = 0.2;

class Keeper {
 public:
  Keeper(const RunSpec& spec, const Inherited& inherited, Caretaker caretaker, FrontLink& link)
      : spec_(spec),
        inherited_(inherited),
        caretaker_(std::move(caretaker)),
        link_(link),
        turn_(spec_, caretaker_, link_),
        queue_(spec.tasks.tasks.size(), {spec.restarts, spec.restart_on, spec.fail_fast}),
        sharing_(caretaker_.pool(), sharing_options(spec)) {}

  Result<void> run() {
    REMUDA_TRY(turn_.submit());
    id_ = turn_.job();
    for (;;) {
      REMUDA_ASSIGN(const bool is_running, turn_.wait());
      if (!is_running) {
        link_.tell(Kind::ended, id_, turn_.why(), turn_.status());
        return {};
      }
      claims_ = turn_.claims();
      limit_at_s_ = spec_.job.time_limit_s > 0 ? monotonic_s() + spec_.job.time_limit_s : kNever_s;
      const Outcome outcome = spec_.tasks.empty() ? run_with_restarts() : run_tasks();
      sharing_.end();
      if (!(outcome.may_requeue && spec_.can_be_queued_again())) return finish(outcome);
      REMUDA_TRY(queue_again(outcome));
    }
  }

 private:
  /// Frees the devices before other jobs are started, as finish() does: the scheduler decides by their current state.
  Result<void> queue_again(const Outcome& outcome) {
    link_.tell(Kind::note, id_, fmt::format("{}; queued again", outcome.why));
    PoolRetry retry(caretaker_.pool(), link_);
    for (;;) {
      const auto requeued = caretaker_.pool().change([&](pool::PoolState& state) -> Result<void> {
        requeue(state, id_, {}, wall_s());
        return {};
      });
      if (requeued) break;
      if (link_.gone() || !retry.rest(id_, requeued.error())) return requeued;
      (void)link_.news();  // to learn whether the front is still there; a request to end the job itself is in the pool
    }
    sharing_.end();
    return start_others();
  }

  bool wants_restart(const Outcome& outcome, int restarts) const {
    if (!outcome.started || outcome.stopped || outcome.state.ok() || restarts >= spec_.restarts) return false;
    return spec_.restart_on.empty() ||
           std::ranges::find(spec_.restart_on, exit_code(outcome.state)) != spec_.restart_on.end();
  }

  Outcome run_with_restarts() {
    for (int restarts = 0;; ++restarts) {
      Outcome outcome = run_once(restarts);
      if (!wants_restart(outcome, restarts) || !back_off(restarts, outcome)) return outcome;
      (void)caretaker_.pool().change([&](pool::PoolState& state) -> Result<void> {
        if (pool::Job* job = state.find(id_)) ++job->restarts;
        return {};
      });
      link_.tell(Kind::note, id_,
                 fmt::format("{}; starts again ({} of {})", to_string(outcome.state), restarts + 1, spec_.restarts));
    }
  }

  /// Waits before the next start, longer each time; false when the job is to end instead, or to be queued again.
  bool back_off(int restarts, Outcome& outcome) {
    constexpr double kFirst_s = 1, kLongest_s = 60;
    const double end_s = monotonic_s() + std::min(kLongest_s, kFirst_s * std::exp2(std::min(restarts, 10)));
    for (;;) {
      if (is_called_off(outcome)) return false;
      if (monotonic_s() >= limit_at_s_) {
        queue_again_as(outcome, time_limit_text(spec_));
        return false;
      }
      const double left_s = end_s - monotonic_s();
      if (left_s <= 0) return true;
      if (!caretaker_.pool().wait({}, std::min(left_s, limit_at_s_ - monotonic_s()), link_.readable())) return false;
    }
  }

  /// Whether a signal or a change of the pool since then asks the job to end, or to be queued again.
  bool is_called_off(Outcome& outcome) {
    bool is_told = link_.gone();
    const auto news = link_.news();
    const auto state = caretaker_.pool().read();
    const pool::Job* job = state ? state->find(id_) : nullptr;
    if (!job || job->cancelled) return true;
    for (const SignalNews& one : news) {
      if (one.number == SIGUSR1 || one.number == SIGUSR2) continue;  // there is no process to send it to
      is_told = true;
      if (one.number == SIGTERM) queue_again_as(outcome, "was told to stop");
    }
    if (job->preempted_by == 0) return is_told;
    queue_again_as(outcome, fmt::format("makes room for job {}", job->preempted_by));
    return true;
  }

  static void queue_again_as(Outcome& outcome, std::string why) {
    outcome.may_requeue = true;
    outcome.why = std::move(why);
  }

  Outcome run_once(int restarts) {
    const auto cannot = [](const Error& error) { return Outcome{{process::kOwnFailure, 0}, error.message, false}; };
    if (const auto opened = open_output(1); !opened) return cannot(opened.error());
    const auto devices = held_devices();
    if (!devices) return cannot(devices.error());
    const auto confinement = confine();
    if (!confinement) return cannot(confinement.error());
    auto processes = plan(*devices, restarts);
    if (!processes) return cannot(processes.error());
    for (process::ProcessSpec& process : *processes) process.cgroup = confinement->cgroup();
    return Watch(spec_, watched(restarts < spec_.restarts), caretaker_.pool(), link_, *confinement).run(*processes);
  }

  Watch::Job watched(bool restart) const {
    return {id_, devices_text_, inherited_.group, limit_at_s_, restart, output_ ? &*output_ : nullptr};
  }

  /// An output that copies stays open from run to run.
  Result<void> open_output(size_t lanes) {
    if (output_ && output_->copies()) return {};
    output_.reset();
    REMUDA_ASSIGN(JobOutput opened, JobOutput::open(spec_, id_, lanes));
    output_.emplace(std::move(opened));
    return {};
  }

  /// The confinement in force is recorded before a process of the job can ask for it (Caretaker::confining_job()).
  Result<confine::Confinement> confine() {
    REMUDA_ASSIGN(const pool::PoolState state, caretaker_.pool().read());
    const Inventory& inventory = caretaker_.inventory();
    std::optional<confine::Withheld> withheld;
    if (spec_.live) withheld = confine::withheld_nodes(inventory, devices_of(state, id_, inventory));
    confine::Confinement confinement = confine::Confinement::make(spec_.pool, id_, withheld);
    if (spec_.isolate && !confinement.how().devices) return failed(cannot_isolate(confinement.how()));
    if (confinement.how().cgroup == 0) return confinement;
    const auto recorded = caretaker_.pool().change([&](pool::PoolState& changed) -> Result<void> {
      pool::Job* job = changed.find(id_);
      if (!job) return {};
      job->cgroup = confinement.folder();
      job->devices_enforced = confinement.how().devices;
      job->files_denied = confinement.how().files_denied;
      return {};
    });
    if (!recorded) link_.tell(Kind::note, id_, recorded.error().message);
    return confinement;
  }

  Outcome run_tasks() {
    auto outcome = try_tasks();
    if (!outcome) return {{process::kOwnFailure, 0}, outcome.error().message, false};
    outcome->why += (outcome->why.empty() ? "" : "; ") + summary_text(queue_, spec_.tasks.tasks);
    return *outcome;
  }

  Result<Outcome> try_tasks() {
    REMUDA_ASSIGN(const std::vector<std::string> devices, held_devices());
    REMUDA_TRY(open_output(devices.size()));
    REMUDA_ASSIGN(const confine::Confinement confinement, confine());
    const Fd no_input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    std::vector<process::ProcessSpec> slots;
    for (const std::string& device : devices) {
      const size_t lane = slots.size();
      slots.push_back(process(job_environment(caretaker_.inventory(), spec_.pool, id_, {device}), {device}));
      slots.back().in = no_input.get();
      slots.back().out = output_->out(lane);
      slots.back().err = output_->err(lane);
      slots.back().cgroup = confinement.cgroup();
    }
    const auto tell = [this](const std::string& text, double progress) {
      if (progress < 0)
        link_.tell(Kind::note, id_, text);
      else if (link_.is_heard())
        link_.tell(Kind::progress, id_, text, static_cast<int>(progress * 100));
    };
    TaskRun tasks(spec_.tasks, queue_, std::move(slots), labels_of(caretaker_.inventory(), devices), tell);
    return Watch(spec_, watched(false), caretaker_.pool(), link_, confinement).run(tasks);
  }

  /// The job's devices; also reports them to the front.
  Result<std::vector<std::string>> held_devices() {
    if (const auto looked = caretaker_.look_if_old(); !looked) link_.tell(Kind::note, id_, looked.error().message);
    REMUDA_ASSIGN(const pool::PoolState state, caretaker_.pool().read());
    if (const std::string why = missing_device(state, id_, caretaker_.inventory()); !why.empty()) return failed(why);
    const Inventory& inventory = caretaker_.inventory();
    std::vector<std::string> devices = devices_of(state, id_, inventory);
    devices_text_ = labels_text(inventory, devices);
    link_.tell(Kind::started, id_, joined_devices_text(inventory, devices));
    if (const std::string text = sharing_.begin(inventory, id_, devices); !text.empty())
      link_.tell(Kind::note, id_, text);
    return devices;
  }

  Result<std::vector<process::ProcessSpec>> plan(const std::vector<std::string>& devices, int restarts) {
    const Inventory& inventory = caretaker_.inventory();
    std::vector<process::ProcessSpec> processes;
    if (spec_.each) {
      REMUDA_ASSIGN(const workers::Listener free_port, workers::listen_on_loopback(0));
      const int threads = env::get(env::omp_num_threads) ? 0 : threads_of_each(devices.size());
      const Ranks ranks{free_port.port, restarts, spec_.restarts, threads};
      for (int rank = 0; rank < static_cast<int>(devices.size()); ++rank)
        processes.push_back(
            process(rank_environment(inventory, spec_.pool, id_, devices, rank, ranks), {devices[rank]}));
    } else {
      processes.push_back(process(job_environment(inventory, spec_.pool, id_, devices), devices));
    }
    for (process::ProcessSpec& process : processes) {
      process.out = output_->out();
      process.err = output_->err();
    }
    return processes;
  }

  process::ProcessSpec process(confine::Visibility environment, const std::vector<std::string>& devices) const {
    process::ProcessSpec process{.argv = spec_.job.command,
                                 .environment = std::move(environment.set),
                                 .unset = std::move(environment.unset),
                                 .folder = spec_.job.folder,
                                 .affinity = {},
                                 .group = inherited_.group,
                                 .inherited = {inherited_.lifeline},
                                 .mask = inherited_.mask};
    std::ranges::copy(claims_, std::back_inserter(process.inherited));
    std::ranges::move(sharing_.environment(devices), std::back_inserter(process.environment));
    if (spec_.job.array != 0) {
      process.environment.emplace_back(env::job_array.name, std::to_string(spec_.job.array));
      process.environment.emplace_back(env::job_array_index.name, std::to_string(spec_.job.array_index));
    }
    if (spec_.live)
      process.affinity = confine::nearest_cores(caretaker_.inventory(), devices, process::allowed_cores());
    return process;
  }

  /// Records the end and frees the devices before the front is notified, and ahead of all processes that wait in line
  /// for a change. Where the machine is this one, it is read again before other jobs start: the job's processes have
  /// just left its devices.
  Result<void> finish(const Outcome& outcome) {
    const pool::Ending ending{outcome.state.status, outcome.state.signal,
                              outcome.why.empty() ? to_string(outcome.state) : outcome.why};
    const auto recorded = caretaker_.pool().change([&](pool::PoolState& state) -> Result<void> {
      end(state, id_, ending, {}, wall_s());
      return {};
    });
    if (!recorded) link_.tell(Kind::note, id_, recorded.error().message);
    sharing_.end();  // of two jobs that end at once, each may have left a daemon for the other to stop
    sweep_own_logs();
    const bool is_read = !output_ || output_->finish(kMoment_s);
    Result<void> started;
    if (!is_read && recorded) {
      turn_.release_claims();
      started = start_others();
      await_readers();
    }
    link_.tell(Kind::ended, id_, outcome.why, exit_code(outcome.state));
    return is_read ? start_others() : started;
  }

  void sweep_own_logs() {
    if (!output_ || !output_->has_pool_log()) return;
    if (const auto state = caretaker_.pool().read()) pool::sweep_logs(spec_.pool, *state);
  }

  /// The job is over and its devices are free; its last output has not been read yet.
  void await_readers() {
    constexpr double kNoteAfter_s = 2;
    double patience_s = kNoteAfter_s;
    while (!output_->finish(patience_s, link_.readable())) {
      for (const SignalNews& news : link_.news())
        if (news.number != SIGUSR1 && news.number != SIGUSR2) return;
      if (link_.gone()) return;
      if (std::exchange(patience_s, kNever_s) == kNoteAfter_s)
        link_.tell(Kind::note, id_, "it has ended, and its devices are free; what it wrote last waits to be read");
    }
  }

  Result<void> start_others() {
    REMUDA_ASSIGN(const pool::PoolState state, caretaker_.pool().read());
    if (std::ranges::find(state.jobs, pool::JobState::waiting, &pool::Job::state) == state.jobs.end()) return {};
    if (spec_.live) REMUDA_TRY(caretaker_.look_again());
    return caretaker_.change([](pool::PoolState&) -> Result<void> { return {}; });
  }

  const RunSpec& spec_;
  const Inherited inherited_;
  Caretaker caretaker_;
  FrontLink& link_;
  Turn turn_;
  TaskQueue queue_;  ///< continues where it was when the job is queued again
  share::JobSharing sharing_;
  std::vector<int> claims_;  ///< on the devices; the job's processes inherit them
  std::optional<JobOutput> output_;
  std::string devices_text_;      ///< for people
  double limit_at_s_ = kNever_s;  ///< of this turn, restarts included; on the steady clock
  int64_t id_ = 0;
};

/// Finds what would make the job fail before it waits for its turn.
Result<void> check_isolation(const RunSpec& spec) {
  if (!spec.isolate) return {};
  const confine::Confined possible = confine::try_confinement();
  return possible.devices ? Result<void>{} : failed(cannot_isolate(possible));
}

/// A job that has no access to a device cannot pass it on to another job.
Result<void> check_view(Caretaker& caretaker) {
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  const auto job = Caretaker::confining_job(state);
  if (!job) return {};
  return failed(fmt::format(
      "this is a part of job {}, which sees only the devices that it was granted: start jobs from outside of it",
      *job));
}

Result<void> keep_within(const RunSpec& spec, const Look& look, FrontLink& link, Inherited inherited) {
  REMUDA_TRY(check_isolation(spec));
  REMUDA_ASSIGN(Caretaker caretaker, Caretaker::open(spec.pool, look, spec.live));
  REMUDA_TRY(check_view(caretaker));
  REMUDA_ASSIGN(const pool::Lifeline lifeline, pool::Lifeline::hold(spec.pool));
  inherited.lifeline = lifeline.fd();
  return Keeper(spec, inherited, std::move(caretaker), link).run();
}

}  // namespace

void keep(const RunSpec& spec, const Look& look, Fd front, const Inherited& inherited) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto link = FrontLink::open(std::move(front));
  if (!link) return;
  const auto kept = keep_within(spec, look, *link, inherited);
  if (!kept)
    link->tell(Kind::ended, 0, kept.error().message,
               kept.error().kind == ErrorKind::usage ? exit_status(ErrorKind::usage) : process::kOwnFailure);
}

}  // namespace remuda::run
