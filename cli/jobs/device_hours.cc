#include "cli/jobs/device_hours.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <set>

#include "base/clock.h"
#include "base/local_time.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/jobs/moment.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "cli/watch/waste.h"
#include "cli/watch/watch_loop.h"
#include "device/words.h"
#include "monitor/use_store.h"
#include "run/policy_file.h"

namespace remuda::cli {
namespace {

class Tally {
 public:
  Tally(UsageBy by, const place::RelativeSpeeds& speeds, const HourPrices& prices, double since_s, double now_s)
      : by_(by), speeds_(speeds), prices_(prices), since_s_(since_s), now_s_(now_s) {}

  void add(const pool::Job& job) {
    counted_.clear();
    for (const pool::Turn& turn : job.earlier) add(job, turn);
    if (job.started_s <= 0) return;
    const bool runs = job.state == pool::JobState::running;
    const pool::Turn last{job.started_s, runs ? now_s_ : job.ended_s, job.devices};
    if (job.devices.empty() && last.ended_s > since_s_) ++hours_.without_devices;
    add(job, last);
  }

  DeviceHours take() {
    hours_.unknown.assign(unknown_.begin(), unknown_.end());
    return std::move(hours_);
  }

 private:
  void add(const pool::Job& job, const pool::Turn& turn) {
    const double seconds = std::min(turn.ended_s, now_s_) - std::max(turn.began_s, since_s_);
    if (!(seconds > 0)) return;
    for (const std::string& device : turn.devices) {
      const std::string& whose = by_ == UsageBy::user ? job.user : device;
      Hours& hours = hours_.of[whose];
      if (counted_.insert(whose).second) ++hours.jobs;
      hours.device_s += seconds * job.request.share;
      hours.weighted_s += seconds * job.request.share * speed_of(device);
      hours.cost.add(cost_for(device, seconds * job.request.share));
    }
  }

  double speed_of(const std::string& device) {
    const auto known = speeds_.of.find(device);
    if (known != speeds_.of.end()) return known->second;
    unknown_.insert(device);
    return 1;
  }

  monitor::Amount cost_for(const std::string& device, double seconds) const {
    const auto price = prices_.find(device);
    if (price == prices_.end()) return {.is_complete = false};
    return {.value = price->second * seconds / 3600, .is_known = true};
  }

  const UsageBy by_;
  const place::RelativeSpeeds& speeds_;
  const HourPrices& prices_;
  const double since_s_, now_s_;
  DeviceHours hours_;
  std::set<std::string> counted_;  ///< what the current job was counted for
  std::set<std::string> unknown_;
};

struct UsageFlags {
  MachineFlags machine;
  std::string since = "7d", by, folder;
  bool waste = false, json = false;
};

struct Report {
  DeviceHours hours;
  UsageBy by = UsageBy::user;
  std::string basis;  ///< of the speeds
  double since_s = 0;
  std::string currency;    ///< empty: there is no tariff
  double forgotten_s = 0;  ///< jobs that ended before this are not known any more; 0: all are
  std::vector<std::string> priced_by_energy;
};

std::string hours_text(double seconds) { return fmt::format("{:.1f}", seconds / 3600); }

std::string labels(const std::vector<std::string>& devices, const Inventory& inventory) {
  std::vector<std::string> labels;
  for (const std::string& device : devices) labels.push_back(label_of(inventory, device));
  return fmt::format("{}", fmt::join(labels, ", "));
}

std::string notes_text(const Report& report, const Inventory& inventory) {
  std::string text = fmt::format("WEIGHTED by speed ({}): an hour of the fastest GPU is 1\n", report.basis);
  if (!report.hours.unknown.empty())
    text += fmt::format("The speed of {} is not known, and counts as 1\n", labels(report.hours.unknown, inventory));
  if (!report.priced_by_energy.empty())
    text += fmt::format(
        "The policy has a price for the energy of {}, and none for hours: `remuda usage --waste` says "
        "what is known of that\n",
        labels(report.priced_by_energy, inventory));
  if (report.hours.without_devices > 0)
    text += fmt::format("The devices of {} jobs of an older remuda were not recorded; they are left out\n",
                        report.hours.without_devices);
  if (report.forgotten_s > report.since_s)
    text += fmt::format("Jobs that ended before {} are forgotten; the hours before are too few\n",
                        local_time_text(report.forgotten_s));
  return text;
}

std::string report_text(const Report& report, const Inventory& inventory, size_t width) {
  if (report.hours.of.empty() && report.hours.without_devices == 0)
    return fmt::format("Nobody had a device since {}\n", local_time_text(report.since_s));
  std::vector<std::pair<std::string, Hours>> rows(report.hours.of.begin(), report.hours.of.end());
  std::ranges::stable_sort(rows, std::greater{}, [](const auto& row) { return row.second.device_s; });
  std::vector<std::string> header{report.by == UsageBy::user ? "USER" : "DEVICE", "JOBS", "HOURS", "WEIGHTED"};
  if (!report.currency.empty()) header.push_back(printable(report.currency));
  Table table(header);
  for (const auto& [whose, hours] : rows) {
    std::vector<std::string> row{report.by == UsageBy::user ? whose : label_of(inventory, whose),
                                 std::to_string(hours.jobs), hours_text(hours.device_s), hours_text(hours.weighted_s)};
    if (!report.currency.empty()) row.push_back(monitor::money_text(hours.cost));
    table.add(std::move(row));
  }
  return table.text(width) + notes_text(report, inventory);
}

Json report_json(const Report& report, const Inventory& inventory) {
  const bool by_user = report.by == UsageBy::user;
  Json rows = Json::array();
  for (const auto& [whose, hours] : report.hours.of) {
    Json row{{by_user ? "user" : "device", whose},
             {"jobs", hours.jobs},
             {"device_s", hours.device_s},
             {"weighted_s", hours.weighted_s}};
    if (hours.cost.is_known) {
      row["cost"] = hours.cost.value;
      row["cost_is_complete"] = hours.cost.is_complete;
      row["currency"] = report.currency;
    }
    if (!by_user) row["label"] = label_of(inventory, whose);
    rows.push_back(std::move(row));
  }
  Json json{{"since_s", report.since_s},
            {"usage", std::move(rows)},
            {"weighted_by", report.basis},
            {"unknown_speed", report.hours.unknown},
            {"jobs_without_devices", report.hours.without_devices}};
  if (!report.priced_by_energy.empty()) json["priced_by_energy"] = report.priced_by_energy;
  if (report.forgotten_s > report.since_s) json["forgotten_before_s"] = report.forgotten_s;
  return json;
}

/// When the oldest job ended that the pool still remembers, where it has forgotten others.
double forgotten_before(const std::vector<pool::Job>& ended, int64_t next_job) {
  const auto is_first = [](const pool::Job& job) { return job.id == 1; };
  if (ended.empty() || next_job <= 1 || std::ranges::any_of(ended, is_first)) return 0;
  return std::ranges::min(ended, {}, &pool::Job::id).ended_s;
}

/// From the history that `remuda watch` keeps.
Result<int> print_waste(const UsageFlags& flags, double since_s) {
  if (flags.by == "device") return usage_error("--waste goes by user, by job or by pod, not by device");
  const WasteBy by = flags.by == "job" ? WasteBy::job : flags.by == "pod" ? WasteBy::pod : WasteBy::user;
  std::string folder = flags.folder;
  if (folder.empty()) {
    REMUDA_ASSIGN(folder, watch_folder(flags.machine.file));
  }
  std::vector<monitor::LeaseUse> uses;
  REMUDA_TRY(check_readable(folder + "/history.db"));
  std::error_code error;
  if (std::filesystem::exists(folder + "/history.db", error)) {
    REMUDA_ASSIGN(monitor::UseStore store, monitor::UseStore::open(folder));
    REMUDA_ASSIGN(uses, store.read(since_s));
    if (!store.left_out().empty()) fmt::print(stderr, "remuda usage: {}\n", store.left_out());
  } else if (!flags.folder.empty()) {
    return usage_error(fmt::format("--folder: {} has no history", folder));
  }
  REMUDA_ASSIGN(const PoolPlace place, place_of_pool(flags.machine));
  const policy::Policy policy = run::policy_at(place.policy).value_or(policy::Policy{});
  const std::vector<Waste> rows = waste_of(uses, by, policy);
  fmt::print("{}", flags.json ? to_pretty(waste_json(rows, policy.currency))
                              : waste_text(rows, by, policy.currency, table_width()));
  return 0;
}

Result<int> usage(const UsageFlags& flags) {
  const double now_s = wall_s();
  const auto since_s = parse_moment(flags.since, now_s, Side::past);
  if (!since_s)
    return usage_error(
        fmt::format("--since: '{}' is no time; write 7d, 2h, 14:30 or 2026-11-24", printable(flags.since)));
  if (flags.waste || flags.by == "pod") return print_waste(flags, *since_s);
  if (flags.by == "job") return usage_error("--by job goes with --waste");
  if (!flags.folder.empty()) return usage_error("--folder goes with --waste or --by pod");
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  REMUDA_ASSIGN(std::vector<pool::Job> jobs, caretaker.pool().ended(kAllEnded));
  const bool has_first = std::ranges::any_of(state.jobs, [](const pool::Job& job) { return job.id == 1; });
  const double forgotten_s = has_first ? 0 : forgotten_before(jobs, state.next_job);
  for (const pool::Job& job : state.jobs)
    if (job.state != pool::JobState::ended) jobs.push_back(job);
  const place::RelativeSpeeds speeds = place::relative_speeds(caretaker.inventory());
  const UsageBy by = flags.by == "device" ? UsageBy::device : UsageBy::user;
  const pool::Policy policy = policy_or_none(caretaker);
  const HourPrices prices = hour_prices(caretaker.inventory(), policy);
  const Report report{device_hours(jobs, by, speeds, *since_s, now_s, prices),
                      by,
                      speeds.basis,
                      *since_s,
                      prices.empty() ? "" : policy.currency,
                      forgotten_s,
                      priced_by_energy(caretaker.inventory(), policy)};
  if (flags.json)
    fmt::print("{}", to_pretty(report_json(report, caretaker.inventory())));
  else
    fmt::print("{}", report_text(report, caretaker.inventory(), table_width()));
  return 0;
}

}  // namespace

HourPrices hour_prices(const Inventory& inventory, const policy::Policy& policy) {
  HourPrices prices;
  for (const Device& device : inventory.devices)
    if (const policy::Tariff* tariff = monitor::tariff_of(policy.tariffs, device.model); tariff && tariff->hour > 0)
      prices[device.id] = tariff->hour;
  return prices;
}

std::vector<std::string> priced_by_energy(const Inventory& inventory, const policy::Policy& policy) {
  std::vector<std::string> devices;
  for (const Device& device : inventory.devices)
    if (const policy::Tariff* tariff = monitor::tariff_of(policy.tariffs, device.model);
        tariff && tariff->hour <= 0 && tariff->kwh > 0)
      devices.push_back(device.id);
  return devices;
}

DeviceHours device_hours(std::span<const pool::Job> jobs, UsageBy by, const place::RelativeSpeeds& speeds,
                         double since_s, double now_s, const HourPrices& prices) {
  Tally tally(by, speeds, prices, since_s, now_s);
  for (const pool::Job& job : jobs) tally.add(job);
  return tally.take();
}

void add_usage(Program& program) {
  auto flags = std::make_shared<UsageFlags>();
  CLI::App& command = program.add("usage", "Show for how long jobs had devices", [flags] { return usage(*flags); });
  command.add_option("--since", flags->since, "Since then: 7d (unless given), 2h, 14:30 or 2026-11-24")
      ->type_name("TIME");
  command
      .add_option("--by", flags->by,
                  "A line for each user (unless given), device, or, as far as `remuda watch` ran, "
                  "pod, or, with --waste, job")
      ->check(CLI::IsMember({"user", "device", "job", "pod"}));
  command.add_flag("--waste", flags->waste, "Show how much of it was for nothing, as far as `remuda watch` ran");
  command
      .add_option("--folder", flags->folder,
                  "With --waste or --by pod: where the history is that `remuda watch --folder` keeps")
      ->type_name("FOLDER");
  command.add_flag("--json", flags->json, "Print as JSON, in seconds");
  add_machine_options(command, flags->machine);
  command.footer(
      "Half a device for an hour is half an hour. WEIGHTED counts slower GPUs less, by measured speed (`remuda bench "
      "links`)\n"
      "where it is known. Where the policy has tariffs, hours of devices have their price; --waste has that of energy, "
      "too. What runs counts up to now; of ended jobs the pool remembers 10000.\n\n"
      "Examples:\n"
      "  remuda usage                         the last seven days, by user\n"
      "  remuda usage --since 1d --by device  which devices were used\n"
      "  remuda usage --waste --by job        which jobs held devices for nothing\n"
      "  remuda usage --by pod                what pods made of the devices that a kubelet gave them\n");
}

}  // namespace remuda::cli
