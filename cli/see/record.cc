#include "cli/see/record.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/machine.h"
#include "cli/status_line.h"
#include "cli/subcommands.h"
#include "probe/live_machine.h"

namespace remuda::cli {
namespace {

constexpr const char* kRecordExamples =
    "Examples:\n"
    "  remuda record machine.json                       this machine, watched for 5 seconds\n"
    "  remuda record machine.json --seconds 0           its state now\n"
    "  remuda list --machine machine.json               the recording in place of the live machine\n"
    "Serial numbers, user names and command lines are left out unless asked for.\n";

struct RecordFlags {
  MachineFlags machine;
  std::string file;
  double seconds = 5, interval = 1;
  Privacy privacy;
  bool quiet = false;
};

template <typename T>
void leave_out(Reading<T>& reading) {
  if (reading.has_value()) reading = Missing{MissingReason::denied, "left out of the recording"};
}

void leave_out_names(Status& status) {
  if (!status.processes.has_value()) return;
  std::vector<Process> processes = status.processes.value();
  for (Process& process : processes) {
    leave_out(process.user);
    leave_out(process.command);
  }
  status.processes = Reading<std::vector<Process>>(std::move(processes), status.processes.time_s());
}

Status lost_status() {
  Status status;
  status.busy = Missing{MissingReason::lost, "the device was no longer there"};
  return status;
}

Result<Inventory> watch(const RecordFlags& flags, StatusLine& progress) {
  probe::LiveMachine machine({.cpu_devices = flags.machine.cpu_devices});
  REMUDA_ASSIGN(Inventory recording, machine.read());
  const double start_s = monotonic_s();
  for (int i = 1; i * flags.interval <= flags.seconds; ++i) {
    progress.update(fmt::format("recording, {:.0f} of {:.0f} s", (i - 1) * flags.interval, flags.seconds),
                    (i - 1) * flags.interval / flags.seconds);
    steady_clock().sleep_s(std::max(0.0, start_s + i * flags.interval - monotonic_s()));
    REMUDA_ASSIGN(const Inventory later, machine.read());
    add_sample(recording, later);
  }
  return recording;
}

Result<Inventory> recorded(const RecordFlags& flags) {
  if (!flags.machine.file.empty()) return read_machine(flags.machine);
  StatusLine progress(StatusLine::mode_of_stderr(flags.quiet), STDERR_FILENO, steady_clock());
  return watch(flags, progress);
}

Result<int> record(const RecordFlags& flags) {
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(flags.file));
  REMUDA_ASSIGN(Inventory recording, recorded(flags));
  redact(recording, flags.privacy);
  REMUDA_TRY(file.commit(to_pretty(to_json(recording))));
  const size_t devices = recording.devices.size(), samples = recording.samples.size();
  fmt::print(stderr, "{}: {}, {}\n", flags.file, counted(double(devices), "device"),
             counted(double(samples), "sample"));
  return 0;
}

}  // namespace

void redact(Inventory& inventory, const Privacy& privacy) {
  for (Device& device : inventory.devices) {
    if (!privacy.serials) leave_out(device.serial);
    if (!privacy.names) leave_out_names(device.status);
  }
  if (privacy.names) return;
  for (Sample& sample : inventory.samples) std::ranges::for_each(sample.devices, leave_out_names);
}

void add_sample(Inventory& recording, const Inventory& later) {
  Sample sample{.time_s = later.time_s};
  for (const Device& device : recording.devices) {
    const Device* now = later.find(device.id);
    sample.devices.push_back(now ? now->status : lost_status());
  }
  recording.samples.push_back(std::move(sample));
}

void add_record(Program& program) {
  auto flags = std::make_shared<RecordFlags>();
  CLI::App& command = program.add("record", "Write this machine to a file, for reports, tests and planning",
                                  [flags] { return record(*flags); });
  command.add_option("FILE", flags->file, "Where to write the recording")->required();
  command.add_option("--seconds", flags->seconds, "Watch for this long")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  command.add_option("--interval", flags->interval, "Read the devices again every this many seconds")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  command.add_flag("--with-serials", flags->privacy.serials, "Keep serial numbers");
  command.add_flag("--with-names", flags->privacy.names, "Keep user names and command lines");
  command.add_flag("--quiet", flags->quiet, "No progress");
  add_machine_options(command, flags->machine);
  command.footer(kRecordExamples);
}

}  // namespace remuda::cli
