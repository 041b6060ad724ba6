#include "run/job_run.h"

#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <set>

#include "base/env.h"
#include "base/listener.h"
#include "confine/confinement.h"
#include "confine/nearest.h"
#include "place/host.h"
#include "run/job_environment.h"
#include "run/task_run.h"
#include "workers/secret.h"

namespace remuda::run {
namespace {

using Kind = Message::Kind;

/// So that all ranks together have as many threads as there are CPUs for them.
int threads_of_each(size_t ranks, size_t cores) { return std::max(1, static_cast<int>(cores / ranks)); }

void put_into(const confine::Confinement& confinement, process::ProcessSpec& process) {
  process.cgroup = confinement.cgroup();
  process.further_cgroups = confinement.further();
}

std::string cannot_isolate(const confine::Confined& how) {
  return fmt::format("the job cannot be kept from devices that it is not granted: {}", how.obstacle);
}

}  // namespace

Result<void> check_isolation(const RunSpec& spec) {
  if (!spec.isolate) return {};
  const confine::Confined possible = confine::try_confinement();
  return possible.devices ? Result<void>{} : failed(cannot_isolate(possible));
}

Outcome JobRun::run_once(int restarts) {
  const auto cannot = [](const Error& error) { return Outcome{{process::kOwnFailure, 0}, error.message, false}; };
  if (const auto opened = open_output(1); !opened) return cannot(opened.error());
  const auto devices = held_devices();
  if (!devices) return cannot(devices.error());
  const auto confinement = confine();
  if (!confinement) return cannot(confinement.error());
  auto processes = plan(*devices, restarts);
  if (!processes) return cannot(processes.error());
  for (process::ProcessSpec& process : *processes) put_into(*confinement, process);
  return JobMonitor(spec_, monitored(restarts < spec_.restarts), caretaker_.pool(), link_, *confinement)
      .run(*processes);
}

JobMonitor::Job JobRun::monitored(bool restart) {
  return {grant_.job, devices_text_, inherited_.group, grant_.limit_at_s, restart, output_ ? &*output_ : nullptr,
          &board_};
}

/// An output that copies stays open from run to run.
Result<void> JobRun::open_output(size_t lanes) {
  if (output_ && output_->copies()) return {};
  output_.reset();
  REMUDA_ASSIGN(JobOutput opened, JobOutput::open(spec_, grant_.job, lanes));
  output_.emplace(std::move(opened));
  return {};
}

/// The confinement in force is recorded before a process of the job can ask for it (Caretaker::confining_job()).
Result<confine::Confinement> JobRun::confine() {
  REMUDA_ASSIGN(const pool::PoolState state, caretaker_.pool().read_around(grant_.job));
  if (caretaker_.pool().is_served()) return confined_by_pool(state);
  const Inventory& inventory = caretaker_.inventory();
  std::optional<confine::Withheld> withheld;
  if (spec_.live) withheld = confine::withheld_nodes(inventory, devices_of(state, grant_.job, inventory));
  confine::Confinement confinement =
      confine::Confinement::make(spec_.pool, grant_.job, withheld, {cores_, spec_.job.request.host_memory_bytes});
  const confine::Confined& how = confinement.how();
  if (spec_.isolate && !how.devices) return failed(cannot_isolate(how));
  if (how.cgroup == 0 && !wants_host(spec_.job.request)) return confinement;
  const auto recorded = caretaker_.apply(pool::RecordConfinement{grant_.job, confinement.folder(), how.devices,
                                                                 how.files_denied, pool::HostKept::by(how.host)});
  if (!recorded) link_.send(Kind::note, grant_.job, recorded.error().message);
  return confinement;
}

/// Its processes are born where this one is: in the cgroup that the pool has made for the job, if it could.
Result<confine::Confinement> JobRun::confined_by_pool(const pool::PoolState& state) const {
  const pool::Job* job = state.find(grant_.job);
  if (spec_.isolate && !(job && job->devices_enforced))
    return failed("the job cannot be kept from devices that it is not granted: the agent was not able to");
  return confine::Confinement();
}

Outcome JobRun::run_tasks() {
  auto outcome = try_tasks();
  if (!outcome) return {{process::kOwnFailure, 0}, outcome.error().message, false};
  outcome->why += (outcome->why.empty() ? "" : "; ") + summary_text(queue_, spec_.tasks.tasks);
  return *outcome;
}

Result<Outcome> JobRun::try_tasks() {
  REMUDA_ASSIGN(const std::vector<std::string> devices, held_devices());
  REMUDA_TRY(open_output(devices.size()));
  REMUDA_ASSIGN(const confine::Confinement confinement, confine());
  const Fd no_input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<process::ProcessSpec> slots;
  for (const std::string& device : devices) {
    const size_t lane = slots.size();
    slots.push_back(process(job_environment(caretaker_.inventory(), spec_.pool, grant_.job, {device}), {device}));
    slots.back().in = no_input.get();
    slots.back().out = output_->out(lane);
    slots.back().err = output_->err(lane);
    put_into(confinement, slots.back());
  }
  const auto report = [this](const std::string& text, double progress) {
    if (progress < 0)
      link_.send(Kind::note, grant_.job, text);
    else if (link_.has_read_all())
      link_.send(Kind::progress, grant_.job, text, static_cast<int>(progress * 100));
  };
  TaskRun tasks(spec_.tasks, queue_, std::move(slots), labels_of(caretaker_.inventory(), devices), report);
  return JobMonitor(spec_, monitored(false), caretaker_.pool(), link_, confinement).run(tasks);
}

Result<std::vector<std::string>> JobRun::held_devices() {
  if (const auto read = caretaker_.read_machine_if_old(); !read)
    link_.send(Kind::note, grant_.job, read.error().message);
  REMUDA_ASSIGN(const pool::PoolState state, caretaker_.pool().read_around(grant_.job));
  if (const std::string why = missing_device(state, grant_.job, caretaker_.inventory()); !why.empty())
    return failed(why);
  const Inventory& inventory = caretaker_.inventory();
  std::vector<std::string> devices = devices_of(state, grant_.job, inventory);
  take_cores(state);
  devices_text_ = labels_text(inventory, devices);
  link_.send(Kind::started, grant_.job, joined_devices_text(inventory, devices));
  if (const std::string text = sharing_.begin(inventory, grant_.job, devices); !text.empty())
    link_.send(Kind::note, grant_.job, text);
  return devices;
}

/// Its own, or else those that no job has for itself, where there are any.
void JobRun::take_cores(const pool::PoolState& state) {
  cores_.clear();
  free_cores_ = process::allowed_cores();
  std::set<int> kept;
  for (const pool::Job& job : state.jobs) {
    if (job.id == grant_.job) cores_ = job.cores;
    if (job.state == pool::JobState::running) kept.insert(job.cores.begin(), job.cores.end());
  }
  std::vector<int> others;
  std::ranges::set_difference(free_cores_, kept, std::back_inserter(others));
  spares_cores_ = !others.empty() && others.size() < free_cores_.size();
  if (spares_cores_) free_cores_ = std::move(others);
}

Result<std::vector<process::ProcessSpec>> JobRun::plan(const std::vector<std::string>& devices, int restarts) {
  const Inventory& inventory = caretaker_.inventory();
  std::vector<process::ProcessSpec> processes;
  if (spec_.each) {
    REMUDA_ASSIGN(const int port, free_port());
    const size_t cores = cores_.empty() ? process::allowed_cores().size() : cores_.size();
    const int threads = env::get(env::omp_num_threads) ? 0 : threads_of_each(devices.size(), cores);
    REMUDA_ASSIGN(std::string secret, workers::make_secret());
    const Ranks ranks{port, restarts, spec_.restarts, threads, std::move(secret)};
    for (int rank = 0; rank < static_cast<int>(devices.size()); ++rank)
      processes.push_back(
          process(rank_environment(inventory, spec_.pool, grant_.job, devices, rank, ranks), {devices[rank]}));
  } else {
    processes.push_back(process(job_environment(inventory, spec_.pool, grant_.job, devices), devices));
  }
  for (process::ProcessSpec& process : processes) {
    process.out = output_->out();
    process.err = output_->err();
  }
  return processes;
}

process::ProcessSpec JobRun::process(confine::Visibility environment, const std::vector<std::string>& devices) const {
  process::ProcessSpec process{.argv = spec_.job.command,
                               .environment = std::move(environment.set),
                               .unset = std::move(environment.unset),
                               .folder = spec_.job.folder,
                               .affinity = {},
                               .group = inherited_.group,
                               .inherited = {},
                               .mask = inherited_.mask};
  if (inherited_.lifeline >= 0) process.inherited.push_back(inherited_.lifeline);
  std::ranges::copy(grant_.claims, std::back_inserter(process.inherited));
  if (board_.fd() >= 0) {
    process.inherited.push_back(board_.fd());
    process.environment.emplace_back(env::run_fd.name, std::to_string(board_.fd()));
  }
  std::ranges::move(sharing_.environment(devices), std::back_inserter(process.environment));
  std::ranges::move(array_environment(spec_.job), std::back_inserter(process.environment));
  if (spec_.live) process.affinity = confine::nearest_cores(caretaker_.inventory(), devices, free_cores_);
  if (spec_.live && !cores_.empty()) process.affinity.cores = cores_;
  if (spec_.live && process.affinity.cores.empty() && spares_cores_) process.affinity.cores = free_cores_;
  return process;
}

}  // namespace remuda::run
