#include "cli/train/train_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "base/env.h"
#include "base/file.h"
#include "base/host_port.h"
#include "base/text.h"
#include "checkpoint/store.h"
#include "cli/train/train_devices.h"
#include "cli/train/train_inputs.h"
#include "cli/train/train_outputs.h"
#include "cli/train/train_request.h"
#include "cli/train/train_workers.h"
#include "confine/visibility.h"

namespace remuda::cli {

using Specs = std::vector<job::DeviceSpec>;

namespace {

/// What a batch system lets this process use, where it runs in an allocation.
std::vector<std::string> allocated_devices() {
  const auto visible = confine::visible_to_caller();
  if (!env::get(env::slurm_job) || env::get(env::job) || !visible || visible->devices.empty()) return {};
  return split(visible->devices, ',');
}

/// Whether the file says which rank uses which device.
bool names_each_rank(const TrainFlags& flags, const AskedRun& asked) {
  return asked.rank && !asked.lease && flags.devices.empty() &&
         asked.job.devices.size() == static_cast<size_t>(asked.rank->size);
}

bool gives_roles(const job::TrainJob& job) {
  return job::ranks_with(job, balance::Role::compute).size() != job.devices.size();
}

Result<ChosenDevices> choose(const TrainFlags& flags, const AskedRun& asked) {
  const MachineFlags& machine = flags.job.machine;
  const auto read = [&](const probe::ProbeOptions& options) {
    return read_machine({machine.file, options.cpu_devices});
  };
  Specs file = asked.job.devices;
  if (names_each_rank(flags, asked)) file = {file[asked.rank->rank]};
  return choose_devices({.file = std::move(file),
                         .line = flags.devices,
                         .cpu_devices = machine.cpu_devices,
                         .lease = asked.lease,
                         .live = machine.file.empty(),
                         .allocated = asked.allocated,
                         .granted = asked.granted},
                        read);
}

/// Of this host's devices, the one of this rank: the first for the host's first rank. Where there is only one, the job
/// or the launcher (`remuda bind`) has chosen it.
Result<std::string> device_of_rank(const LaunchedRank& rank, const Specs& here) {
  if (here.size() == 1) return here[0].use;
  if (static_cast<size_t>(rank.local_rank) < here.size()) return here[rank.local_rank].use;
  std::vector<std::string> names;
  for (const auto& spec : here) names.push_back(spec.use);
  return usage_error(fmt::format("rank {} of {} is number {} on this host, which has {} devices for them: {}",
                                 rank.rank, rank.size, rank.local_rank, here.size(), fmt::join(names, ", ")));
}

/// Of a rank that joins a run.
Result<std::string> only_device(const Specs& here) {
  if (here.size() == 1) return here[0].use;
  std::vector<std::string> names;
  for (const auto& spec : here) names.push_back(spec.use);
  return usage_error(fmt::format("a rank that joins a run has one device, and here are {}: name one with --devices",
                                 fmt::join(names, ", ")));
}

/// What --join does not go together with.
Result<void> check_join(const TrainFlags& flags, const std::optional<LaunchedRank>& rank) {
  if (flags.join.empty()) return {};
  if (!parse_host_port(flags.join))
    return usage_error(fmt::format("--join is '{}'; it must be HOST:PORT, as the run says it, or PORT of this host",
                                   printable(flags.join)));
  if (rank)
    return usage_error(fmt::format("--join is for one rank by itself, but {} has started this as rank {} of {}",
                                   rank->launcher, rank->rank, rank->size));
  const std::pair<const char*, bool> others[] = {
      {"--compare", !flags.compare.empty()},
      {"--step-times, which the first rank of the run writes", !flags.step_times.empty()},
      {"--dry-run", flags.job.dry_run},
      {"--machine", !flags.job.machine.file.empty()}};
  for (const auto& [what, is_there] : others)
    if (is_there) return usage_error(fmt::format("--join does not go together with {}", what));
  return {};
}

/// A device for each rank, which must be the same on all hosts: those of the file, or else by number.
Specs devices_of_ranks(const TrainFlags& flags, const AskedRun& asked) {
  if (names_each_rank(flags, asked)) return asked.job.devices;
  Specs devices;
  for (int each = 0; each < asked.rank->size; ++each) devices.push_back({.use = fmt::format("rank:{}", each)});
  return devices;
}

/// A run that begins beside the checkpoints of another would be taken for that one when it goes on.
Result<void> check_checkpoints(const job::CheckpointSpec& spec) {
  if (spec.folder.empty() || spec.resume == job::Switch::on) return {};
  REMUDA_ASSIGN(const std::vector<checkpoint::Stored> there, checkpoint::stored_in(spec.folder));
  if (there.empty()) return {};
  return usage_error(
      fmt::format("{} has the checkpoints of an earlier run, the newest after step {}: --resume goes on from it; a run "
                  "that begins needs another checkpoint.folder",
                  spec.folder, there.back().step));
}

}  // namespace

Result<AskedRun> read_asked(const TrainFlags& flags) {
  AskedRun asked;
  REMUDA_ASSIGN(asked.text, read_text(flags.file));
  REMUDA_ASSIGN(job::ParsedJob parsed,
                job::parse_job(asked.text, flags.file, {.settings = flags.settings, .devices_follow = true}));
  asked.job = std::move(parsed.job);
  REMUDA_ASSIGN(asked.lease, callers_lease(flags.job.machine));
  REMUDA_ASSIGN(asked.rank, launched_rank());
  REMUDA_TRY(check_join(flags, asked.rank));
  asked.join = flags.join;
  if (flags.job.machine.file.empty()) asked.allocated = allocated_devices();
  REMUDA_ASSIGN(asked.asks, asks_for_devices(flags, asked.job.placement, asked.lease, asked.rank));
  return asked;
}

Result<CheckedRun> check_run(const TrainFlags& flags, const AskedRun& asked) {
  REMUDA_ASSIGN(ChosenDevices chosen, choose(flags, asked));
  CheckedRun run;
  Specs devices = chosen.devices;
  if (asked.rank) {
    REMUDA_ASSIGN(const std::string own, device_of_rank(*asked.rank, chosen.devices));
    run.own = chosen_device(chosen.inventory, own).id;
    devices = devices_of_ranks(flags, asked);
  }
  if (!asked.join.empty()) {
    REMUDA_ASSIGN(const std::string own, only_device(chosen.devices));
    run.own = chosen_device(chosen.inventory, own).id;
  }
  REMUDA_ASSIGN(run.job,
                job::parse_job(asked.text, flags.file,
                               {.settings = flags.settings, .devices = devices, .writes_files = flags.writes_files}));
  run.inventory = std::move(chosen.inventory);
  run.note = std::move(chosen.note);
  if (asked.rank && !names_each_rank(flags, asked) && gives_roles(asked.job))
    run.note = fmt::format(
        "the run is without roles: a rank that {} has started has one where the file has a [[device]] "
        "for each of the {} ranks, in their order",
        asked.rank->launcher, asked.rank->size);
  if (asked.rank)
    if (const std::string why = why_not_elastic(*asked.rank, run.job.job.elastic.ranks_lost); !why.empty())
      run.note += (run.note.empty() ? "" : "; ") + why;
  REMUDA_TRY(check_inputs(run.job.job));
  return run;
}

Result<void> check_before_lease(const TrainFlags& flags, const AskedRun& asked, int count) {
  if (!asked.join.empty() && count != 1)
    return usage_error(fmt::format("a rank that joins a run has one device, and this asks for {}", count));
  job::JobOverrides as_many{.settings = flags.settings, .writes_files = flags.writes_files};
  for (int device = 0; device < count; ++device) as_many.devices.push_back({.use = fmt::format("gpu:{}", device)});
  REMUDA_ASSIGN(const job::ParsedJob job, job::parse_job(asked.text, flags.file, as_many));
  REMUDA_TRY(check_inputs(job.job));
  REMUDA_TRY(check_outputs(flags, job.job));
  REMUDA_TRY(worker_program());
  return {};
}

Result<void> check_outputs(const TrainFlags& flags, const job::TrainJob& job) {
  if (flags.join.empty()) REMUDA_TRY(check_checkpoints(job.checkpoint));
  std::vector<std::string> read{flags.file, flags.job.machine.file};
  for (const job::Setting& file : job::files_of(job)) read.push_back(file.value);
  std::vector<job::Setting> written = job::outputs_of(job);
  REMUDA_TRY(check_writable(written));
  written.push_back({"--json", flags.json});
  written.push_back({"--step-times", flags.step_times});
  return check_distinct(written, read);
}

}  // namespace remuda::cli
