#include "cli/train/train_check.h"

#include <fmt/format.h>
#include <vector>

#include "base/file.h"
#include "cli/train/train_devices.h"
#include "cli/train/train_inputs.h"
#include "cli/train/train_outputs.h"
#include "cli/train/train_request.h"
#include "cli/train/train_workers.h"

namespace remuda::cli {

Result<AskedRun> read_asked(const TrainFlags& flags) {
  AskedRun asked;
  REMUDA_ASSIGN(asked.text, read_text(flags.file));
  REMUDA_ASSIGN(job::ParsedJob parsed,
                job::parse_job(asked.text, flags.file, {.settings = flags.settings, .devices_follow = true}));
  asked.job = std::move(parsed.job);
  REMUDA_ASSIGN(asked.lease, callers_lease(flags.job.machine));
  REMUDA_ASSIGN(asked.asks, asks_for_devices(flags, asked.job.placement, asked.lease));
  return asked;
}

Result<CheckedRun> check_run(const TrainFlags& flags, const AskedRun& asked) {
  const MachineFlags& machine = flags.job.machine;
  const auto read = [&](const probe::ProbeOptions& options) {
    return read_machine({machine.file, options.cpu_devices});
  };
  REMUDA_ASSIGN(ChosenDevices chosen, choose_devices({.file = asked.job.devices,
                                                      .line = flags.devices,
                                                      .cpu_devices = machine.cpu_devices,
                                                      .lease = asked.lease,
                                                      .live = machine.file.empty()},
                                                     read));
  CheckedRun run;
  REMUDA_ASSIGN(run.job, job::parse_job(asked.text, flags.file, {flags.settings, chosen.devices}));
  run.inventory = std::move(chosen.inventory);
  run.note = std::move(chosen.note);
  REMUDA_TRY(check_inputs(run.job.job));
  return run;
}

Result<void> check_before_lease(const TrainFlags& flags, const AskedRun& asked, int count) {
  job::JobOverrides as_many{.settings = flags.settings};
  for (int device = 0; device < count; ++device) as_many.devices.push_back({.use = fmt::format("gpu:{}", device)});
  REMUDA_ASSIGN(const job::ParsedJob job, job::parse_job(asked.text, flags.file, as_many));
  REMUDA_TRY(check_inputs(job.job));
  REMUDA_TRY(check_outputs(flags, job.job));
  REMUDA_TRY(worker_program());
  return {};
}

Result<void> check_outputs(const TrainFlags& flags, const job::TrainJob& job) {
  std::vector<std::string> read{flags.file, flags.job.machine.file};
  for (const job::Setting& file : job::files_of(job)) read.push_back(file.value);
  std::vector<job::Setting> written = job::outputs_of(job);
  REMUDA_TRY(check_writable(written));
  written.push_back({"--json", flags.json});
  written.push_back({"--trace", flags.trace});
  return check_distinct(written, read);
}

}  // namespace remuda::cli
