// remuda watch: reads the machine and its pool every second, and keeps what is to be known of the past.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <poll.h>

#include "base/clock.h"
#include "cli/subcommands.h"
#include "cli/watch/alert_reports.h"
#include "cli/watch/exports.h"
#include "cli/watch/watch_loop.h"
#include "process/stop_signals.h"

namespace remuda::cli {
namespace {

struct WatchFlags {
  MachineFlags machine;
  std::string folder, text_file, job_files;
  ReportFlags reports;
};

/// Says each sentence once, until another one or success comes in between.
class Complaints {
 public:
  void take(const Result<void>& outcome) {
    const std::string text = outcome ? "" : outcome.error().message;
    if (text != last_ && !text.empty()) fmt::print(stderr, "remuda watch: {}\n", text);
    last_ = text;
  }

 private:
  std::string last_;
};

Result<void> run(const WatchFlags& flags, WatchLoop& loop, process::StopSignals& stop) {
  Exports exports(flags.text_file, flags.job_files);
  Complaints complaints;
  AlertReports reports(flags.reports, "remuda watch", true);
  double next_s = monotonic_s();
  while (!stop.next()) {
    auto outcome = loop.step();
    if (outcome) outcome = exports.write(loop.moment());
    complaints.take(outcome ? loop.kept() : outcome);
    reports.take(loop.alerts(), monotonic_s(), wall_s());
    // What took too long is not made up for: readings stay about a second apart.
    next_s = std::max(next_s + WatchLoop::kEvery_s, monotonic_s());
    pollfd signals{stop.fd(), POLLIN, 0};
    const double rest_s = next_s - monotonic_s();
    if (rest_s > 0) ::poll(&signals, 1, static_cast<int>(std::ceil(rest_s * 1000)));
  }
  return loop.end();
}

Result<int> watch(const WatchFlags& flags) {
  REMUDA_ASSIGN(process::StopSignals stop, process::StopSignals::hold_with_hang_up());
  std::string folder = flags.folder;
  if (folder.empty()) {
    REMUDA_ASSIGN(folder, watch_folder(flags.machine.file));
  }
  REMUDA_ASSIGN(WatchLoop loop, WatchLoop::open(flags.machine, folder, true));
  if (loop.kept()) fmt::print(stderr, "remuda watch: keeps the history of this machine in {}\n", folder);
  REMUDA_TRY(run(flags, loop, stop));
  return 0;
}

}  // namespace

void add_watch(Program& program) {
  auto flags = std::make_shared<WatchFlags>();
  CLI::App& command =
      program.add("watch", "Read the devices every second, and keep what they did", [flags] { return watch(*flags); });
  command.add_option("--folder", flags->folder, "Where the history is; in your state folder unless given")
      ->type_name("FOLDER");
  command
      .add_option("--text-file", flags->text_file,
                  "Write metrics for Prometheus to this file, too: for node_exporter's textfile collector")
      ->type_name("FILE");
  command
      .add_option(
          "--job-files", flags->job_files,
          "Write which jobs hold each GPU to files in this folder, too: for dcgm-exporter's --hpc-job-mapping-dir")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  add_report_options(command, flags->reports);
  add_machine_options(command, flags->machine);
  command.footer(
      "It keeps each second of an hour, each 10 seconds of a day and each minute of 30 days, in a file that does not "
      "grow\n"
      "beyond that (some 5 MB for each GPU); and for each job how long its devices were held, busy and effective, "
      "their\n"
      "energy and memory: `remuda usage --waste` prints that. Devices that are held and idle for half an hour, "
      "throttled,\n"
      "faulty, almost out of memory or used without a lease are said on stderr, with the command to act. It runs "
      "until\n"
      "SIGTERM or Ctrl-C, needs no root, and changes nothing. Where an agent keeps devices from users, readings are "
      "the "
      "agent's.\n\n"
      "Examples:\n"
      "  remuda watch                                                     for yourself, in a terminal of its own\n"
      "  remuda watch --on-alert 'logger -t remuda \"$REMUDA_ALERT_STATE: $REMUDA_ALERT_TEXT\"'\n"
      "  remuda watch --text-file /var/lib/node_exporter/remuda.prom      for a Prometheus that scrapes "
      "node_exporter\n");
}

}  // namespace remuda::cli
