#include "cli/watch/alert_reports.h"

#include <fmt/format.h>
#include <syslog.h>
#include <utility>

#include "base/env.h"
#include "base/json.h"
#include "device/fields.h"

namespace remuda::cli {
namespace {

std::string alert_text(const monitor::Alert& alert) {
  const bool has_ended = alert.ended_s > 0;
  const std::string value = value_text(alert);
  return fmt::format("{}: {}{}{}", has_ended ? "ended" : "alert", alert.text, value.empty() ? "" : ": " + value,
                     has_ended || alert.command.empty() ? "" : "; " + alert.command);
}

void log(const monitor::Alert& alert) {
  ::syslog(LOG_DAEMON | (alert.ended_s > 0 ? LOG_NOTICE : LOG_WARNING), "%s", alert_text(alert).c_str());
}

process::Environment variables_of(const monitor::Alert& alert) {
  return {{env::alert_state.name, alert.ended_s > 0 ? "ended" : "begun"},
          {env::alert.name, to_line(fields::write(alert))},  // names of folders may be no UTF-8
          {env::alert_text.name, alert.text}};
}

}  // namespace

std::string value_text(const monitor::Alert& alert) {
  const bool has_limit = !alert.value.empty() && !alert.limit.empty() && alert.limit != "none";
  return has_limit ? fmt::format("{} (limit {})", alert.value, alert.limit) : alert.value;
}

void add_report_options(CLI::App& command, ReportFlags& flags) {
  command
      .add_option(
          "--on-alert", flags.on_alert,
          "Run this command in a shell when an alert begins or ends: REMUDA_ALERT_STATE, REMUDA_ALERT (JSON) and "
          "REMUDA_ALERT_TEXT say which")
      ->type_name("COMMAND");
  command.add_flag("--syslog", flags.syslog, "Write alerts to the system's log, too");
}

AlertReports::AlertReports(ReportFlags flags, std::string speaker, bool tells)
    : flags_(std::move(flags)), speaker_(std::move(speaker)), tells_(tells), commands_(speaker_) {
  if (flags_.syslog) ::openlog("remuda", LOG_PID, LOG_DAEMON);
}

void AlertReports::report(const monitor::Alert& alert) {
  if (tells_) fmt::print(stderr, "{}: {}\n", speaker_, alert_text(alert));
  if (flags_.syslog) log(alert);
  if (!flags_.on_alert.empty()) commands_.run(flags_.on_alert, variables_of(alert));
}

void AlertReports::take(const std::vector<monitor::Alert>& active, double now_s, double wall_s) {
  for (const monitor::Alert& alert : notifier_.take(active, wall_s)) report(alert);
  commands_.tend(now_s);
}

}  // namespace remuda::cli
