// remuda alerts: what `remuda watch` has found wrong, who looks after it, and what is not to be said for a while.
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/file.h"
#include "base/local_time.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "cli/watch/alert_reports.h"
#include "cli/watch/watch_loop.h"
#include "device/fields.h"
#include "monitor/attention.h"
#include "process/user_name.h"

namespace remuda::cli {
namespace {

/// The process that watches writes them every 10 seconds.
constexpr double kFresh_s = 30;
constexpr const char* kUnwatched = "Nobody has watched this machine";

struct AlertsFlags {
  MachineFlags machine;
  std::string folder, lasting = "1d";
  std::vector<std::string> acknowledge, silence, unsilence;
  bool json = false;
};

std::string who_text(const monitor::Alert& alert) {
  std::string text = alert.acknowledged_by;
  if (alert.silenced_until_s > 0)
    text += fmt::format("{}silenced until {}", text.empty() ? "" : ", ", local_time_text(alert.silenced_until_s));
  return text.empty() ? "-" : printable(text);
}

/// "3f81c2: 92 C (limit 90 C); remuda list gpu:0": what is, its limit, and the command to act.
std::string measure_text(const monitor::Alert& alert) {
  std::string text = value_text(alert);
  if (!alert.command.empty()) text += (text.empty() ? "" : "; ") + alert.command;
  return text.empty() ? "" : fmt::format("{}: {}\n", printable(alert.id), printable(text));
}

std::string silences_text(const std::vector<monitor::Silence>& silences, double now_s) {
  std::string text;
  for (const monitor::Silence& one : silences)
    if (one.until_s > now_s)
      text += fmt::format("Silenced until {}: {} of {} ({})\n", local_time_text(one.until_s), printable(one.rule),
                          one.device.empty() ? "all devices" : printable(one.device), printable(one.by));
  return text;
}

std::string list_text(const monitor::WrittenAlerts& written, const std::vector<monitor::Silence>& silences,
                      double now_s, size_t width) {
  const std::string silenced = silences_text(silences, now_s);
  if (written.time_s == 0) return kUnwatched + std::string(": start `remuda watch`, or `remuda web`\n") + silenced;
  std::string text;
  if (now_s - written.time_s > kFresh_s)
    text = fmt::format("As of {} ago, when this machine was watched last:\n", duration_text(now_s - written.time_s));
  if (written.alerts.empty()) return text + "No alerts\n" + silenced;
  Table table({"ID", "ALERT", "DEVICE", "FOR", "WHO", "WHAT"});
  for (const monitor::Alert& alert : written.alerts)
    table.add({printable(alert.id), printable(alert.rule), printable(alert.label),
               duration_text(std::max(0.0, now_s - alert.since_s)), who_text(alert), printable(alert.text)});
  text += table.text(width);
  for (const monitor::Alert& alert : written.alerts) text += measure_text(alert);
  return text + silenced;
}

/// Without a reading, nothing is known of alerts: not even that there are none.
Json list_json(const monitor::WrittenAlerts& written, const std::vector<monitor::Silence>& silences) {
  Json json{{"time_s", nullptr}, {"alerts", nullptr}, {"silences", fields::write(silences)}};
  if (written.time_s == 0)
    json["unknown"] = kUnwatched;
  else
    json.update({{"time_s", written.time_s}, {"alerts", fields::write(written.alerts)}});
  return json;
}

/// "throttled:gpu:0" or "throttled".
Result<monitor::Silence> silence_of(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  monitor::Silence silence{.rule = text.substr(0, colon), .device = "", .by = "", .until_s = 0};
  if (colon < text.size()) silence.device = text.substr(colon + 1);
  if (std::ranges::find(monitor::kRules, silence.rule) != monitor::kRules.end()) return silence;
  return usage_error(
      fmt::format("there is no alert '{}'; they are: {}", printable(silence.rule), fmt::join(monitor::kRules, ", ")));
}

bool is_same(const monitor::Silence& a, const monitor::Silence& b) { return a.rule == b.rule && a.device == b.device; }

/// Refuses a device that the machine does not have, unless an alert names it, as one that is lost. Of a disk, the
/// device is a folder.
Result<void> check_there(const MachineFlags& machine, const monitor::WrittenAlerts& written,
                         const monitor::Silence& silence) {
  const auto names_it = [&](const monitor::Alert& one) {
    return one.device == silence.device || one.label == silence.device;
  };
  if (silence.device.empty() || silence.device.starts_with('/') || std::ranges::any_of(written.alerts, names_it))
    return {};
  REMUDA_ASSIGN(const Inventory inventory, read_machine(machine));
  const auto found = inventory.resolve(silence.device);
  return found ? Result<void>{} : tl::unexpected(found.error());
}

/// What the flags ask for, checked before any of it is done.
struct AlertChanges {
  std::vector<monitor::Silence> silences, over;
};

Result<AlertChanges> changes_by(const AlertsFlags& flags, const monitor::WrittenAlerts& written,
                                const std::string& user, double now_s) {
  AlertChanges wanted;
  for (const std::string& id : flags.acknowledge)
    if (std::ranges::find(written.alerts, id, &monitor::Alert::id) == written.alerts.end())
      return usage_error(fmt::format("there is no alert '{}' now; `remuda alerts` lists them", printable(id)));
  const auto lasting_s = parse_duration(flags.lasting);
  if (!lasting_s)
    return usage_error(fmt::format("--for: '{}' is no time; write 30m, 2h or 1d", printable(flags.lasting)));
  for (const std::string& text : flags.silence) {
    REMUDA_ASSIGN(monitor::Silence one, silence_of(text));
    REMUDA_TRY(check_there(flags.machine, written, one));
    one.by = user;
    one.until_s = now_s + *lasting_s;
    wanted.silences.push_back(std::move(one));
  }
  for (const std::string& text : flags.unsilence) {
    REMUDA_ASSIGN(monitor::Silence one, silence_of(text));
    wanted.over.push_back(std::move(one));
  }
  return wanted;
}

void apply(const AlertsFlags& flags, const AlertChanges& wanted, const std::string& user, double now_s,
           monitor::Attention& all) {
  for (const std::string& id : flags.acknowledge) {
    std::erase_if(all.acknowledged, [&](const monitor::Acknowledged& one) { return one.alert == id; });
    all.acknowledged.push_back({.alert = id, .by = user, .at_s = now_s});
  }
  for (const auto* const list : {&wanted.over, &wanted.silences})
    for (const monitor::Silence& silence : *list)
      std::erase_if(all.silences, [&](const monitor::Silence& one) { return is_same(one, silence); });
  std::ranges::copy(wanted.silences, std::back_inserter(all.silences));
}

/// Where root is to change a folder of another user's: within it, as that user, so that what is written stays theirs,
/// and no link of theirs leads out of what they may write. The way to it may be open to root alone.
Result<std::string> enter_as_owner(const std::string& folder) {
  if (::geteuid() != 0) return folder;
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0)
    return usage_error(fmt::format("cannot open {}: {}", folder, errno_text(errno)));
  if (info.st_uid == 0) return folder;
  if (::fchdir(fd.get()) != 0 || ::setgroups(0, nullptr) != 0 ||
      ::setresgid(info.st_gid, info.st_gid, info.st_gid) != 0 ||
      ::setresuid(info.st_uid, info.st_uid, info.st_uid) != 0)
    return failed(fmt::format("cannot change {} as its owner: {}", folder, errno_text(errno)));
  return ".";
}

Result<int> alerts(const AlertsFlags& flags) {
  std::string folder = flags.folder;
  if (folder.empty()) {
    REMUDA_ASSIGN(folder, watch_folder(flags.machine.file));
  }
  const double now_s = wall_s();
  std::error_code why_not;
  if (!flags.folder.empty() && std::filesystem::status(folder, why_not).type() == std::filesystem::file_type::not_found)
    return usage_error(fmt::format("--folder: there is no folder {}", printable(folder)));
  REMUDA_TRY(check_readable(folder + "/alerts.json"));
  REMUDA_ASSIGN(monitor::WrittenAlerts written, monitor::read_alerts(folder));
  const bool has_changes = !(flags.acknowledge.empty() && flags.silence.empty() && flags.unsilence.empty());
  if (has_changes) {
    const std::string user = process::user_name(static_cast<int>(::getuid()));
    REMUDA_ASSIGN(const AlertChanges wanted, changes_by(flags, written, user, now_s));
    if (!std::filesystem::exists(folder))
      return usage_error(fmt::format("nobody has watched this machine: there is no folder {}", folder));
    REMUDA_ASSIGN(folder, enter_as_owner(folder));
    REMUDA_TRY(
        monitor::change_attention(folder, [&](monitor::Attention& all) { apply(flags, wanted, user, now_s, all); }));
  }
  REMUDA_ASSIGN(const monitor::Attention attention, monitor::read_attention(folder));
  written.alerts = monitor::marked(std::move(written.alerts), attention, now_s);
  if (flags.json)
    fmt::print("{}", to_pretty(list_json(written, attention.silences)));
  else
    fmt::print("{}", list_text(written, attention.silences, now_s, table_width()));
  return 0;
}

}  // namespace

void add_alerts(Program& program) {
  auto flags = std::make_shared<AlertsFlags>();
  CLI::App& command = program.add("alerts", "Show what `remuda watch` has found wrong, and say who looks after it",
                                  [flags] { return alerts(*flags); });
  const auto add_list = [&](const char* name, std::vector<std::string>& list, const char* type, const char* meaning) {
    return command.add_option(name, list, meaning)->type_name(type)->allow_extra_args(false);
  };
  add_list("--ack", flags->acknowledge, "ID", "You look after this one: it is shown as yours until it is over");
  auto* silence = add_list("--silence", flags->silence, "RULE:DEVICE",
                           "Say nothing of this for a while: of the device, or by RULE alone of all");
  command.add_option("--for", flags->lasting, "For so long: 30m, 2h; 1d unless given")
      ->type_name("TIME")
      ->needs(silence);
  add_list("--unsilence", flags->unsilence, "RULE:DEVICE", "Say it again from now on");
  command.add_option("--folder", flags->folder, "Where the history is; in your state folder unless given")
      ->type_name("FOLDER");
  command.add_flag("--json", flags->json, "Print as JSON");
  add_machine_options(command, flags->machine);
  command.footer(
      "Examples:\n"
      "  remuda alerts                                     what is wrong now, as far as `remuda watch` or `remuda web` "
      "runs\n"
      "  remuda alerts --ack 3f81c2                        you look after it\n"
      "  remuda alerts --silence throttled:gpu:0 --for 2h  nobody hears of that meanwhile\n"
      "  remuda alerts --silence 'held and idle'           of no device, for a day\n");
}

}  // namespace remuda::cli
