// AlertReports: reports alerts that begin or end to people, in the ways that `remuda watch` and `remuda web` have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/watch/alert_commands.h"
#include "monitor/alerts.h"
#include "monitor/notifier.h"

namespace remuda::cli {

struct ReportFlags {
  std::string on_alert;  ///< a command for a shell; empty: none
  bool syslog = false;

  bool is_any() const { return syslog || !on_alert.empty(); }
};

/// "92 C (limit 90 C)": what is, and from where on that is wrong; empty where the alert has no value.
std::string value_text(const monitor::Alert& alert);

/// Declares --on-alert and --syslog. `flags` must live as long as the command's action.
void add_report_options(CLI::App& command, ReportFlags& flags);

/// One thread, which lives as long as the commands may run.
class AlertReports {
 public:
  /// `speaker`: begins the lines on stderr, "remuda watch". `tells`: whether alerts are told there, too.
  AlertReports(ReportFlags flags, std::string speaker, bool tells);

  /// Reports what is new among the alerts of this moment. To be called about once a second; `now_s` is a steady time.
  void take(const std::vector<monitor::Alert>& active, double now_s, double wall_s);

 private:
  void report(const monitor::Alert& alert);

  const ReportFlags flags_;
  const std::string speaker_;
  const bool tells_;
  monitor::Notifier notifier_;
  AlertCommands commands_;
};

}  // namespace remuda::cli
