#include "cli/watch/waste.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "base/table.h"
#include "base/text.h"
#include "device/fields.h"

namespace remuda::cli {
namespace {

std::string hours(double seconds) { return fmt::format("{:.1f}", seconds / 3600); }

/// "-" where nothing is known of it.
std::string share_text(double part_s, double known_s) {
  return known_s > 0 ? fmt::format("{:.0f}%", 100 * part_s / known_s) : "-";
}

void add(const monitor::LeaseUse& use, monitor::LeaseUse& sum) {
  sum.held_s += use.held_s;
  sum.busy_s += use.busy_s;
  sum.busy_known_s += use.busy_known_s;
  sum.effective_s += use.effective_s;
  sum.effective_known_s += use.effective_known_s;
  sum.waiting_s += use.waiting_s;
  sum.waiting_known_s += use.waiting_known_s;
  sum.energy_joules += use.energy_joules;
  sum.energy_known_s += use.energy_known_s;
  sum.throttled_s += use.throttled_s;
  sum.memory_peak_bytes = std::max(sum.memory_peak_bytes, use.memory_peak_bytes);
  sum.last_s = std::max(sum.last_s, use.last_s);
  sum.since_s = sum.since_s == 0 ? use.since_s : std::min(sum.since_s, use.since_s);
}

}  // namespace

std::vector<Waste> waste_of(std::span<const monitor::LeaseUse> uses, bool by_job, const policy::Policy& policy) {
  std::map<std::pair<std::string, int64_t>, Waste> rows;
  std::map<std::pair<std::string, int64_t>, std::set<int64_t>> jobs;
  for (const monitor::LeaseUse& use : uses) {
    const auto key = std::pair(use.user, by_job ? use.job : 0);
    Waste& row = rows[key];
    row.user = use.user;
    row.job = key.second;
    jobs[key].insert(use.job);
    row.jobs = static_cast<int>(jobs[key].size());
    add(use, row.sum);
    row.money.add(money_of(use, policy.tariffs));
  }
  std::vector<Waste> sorted;
  for (auto& [_, row] : rows) sorted.push_back(std::move(row));
  std::ranges::stable_sort(sorted, std::greater{}, &Waste::idle_s);
  return sorted;
}

std::string waste_text(const std::vector<Waste>& rows, bool by_job, const std::string& currency, size_t width) {
  if (rows.empty()) return "Nobody was watched while holding a device; `remuda watch` keeps that\n";
  std::vector<std::string> header{by_job ? "JOB" : "USER",
                                  by_job ? "USER" : "JOBS",
                                  "HELD",
                                  "BUSY",
                                  "WAITING",
                                  "EFFECTIVE",
                                  "IDLE",
                                  "UNKNOWN",
                                  "KWH"};
  if (!currency.empty()) header.insert(header.end(), {printable(currency), "WASTED"});
  Table table(header);
  for (const Waste& row : rows) {
    std::vector<std::string> cells{
        by_job ? std::to_string(row.job) : row.user,
        by_job ? row.user : std::to_string(row.jobs),
        hours(row.sum.held_s),
        share_text(row.sum.busy_s, row.sum.busy_known_s),
        share_text(row.sum.waiting_s, row.sum.waiting_known_s),
        share_text(row.sum.effective_s, row.sum.effective_known_s),
        hours(row.idle_s()),
        hours(row.sum.held_s - row.sum.busy_known_s),
        row.sum.energy_known_s > 0 ? fmt::format("{:.2f}", row.sum.energy_joules / 3.6e6) : "-"};
    if (!currency.empty())
      cells.insert(cells.end(),
                   {monitor::money_text(row.money.cost, row.money), monitor::money_text(row.money.wasted, row.money)});
    table.add(std::move(cells));
  }
  std::string text =
      table.text(width) +
      "Hours of devices, as far as `remuda watch` ran. IDLE: held, and no kernel ran. EFFECTIVE: share of "
      "the known\n"
      "time, weighted by how much of the device the work used. WAITING: for others of a run, as that tells\n";
  if (!currency.empty())
    text += "Money by the tariffs of the policy. WASTED: for IDLE hours. >=: some of it is not known\n";
  return text;
}

Json waste_json(const std::vector<Waste>& rows, const std::string& currency) {
  Json list = Json::array();
  for (const Waste& row : rows) {
    Json one = fields::write(row.sum);
    one.erase("device");
    one.erase("job");
    one["user"] = row.user;
    one["jobs"] = row.jobs;
    if (row.job != 0) one["job"] = row.job;
    one["idle_s"] = row.idle_s();
    for (const char* key : {"model", "share"}) one.erase(key);
    if (row.money.is_known) {
      one["cost"] = row.money.cost;
      one["wasted"] = row.money.wasted;
      one["currency"] = currency;
      one["cost_is_complete"] = row.money.is_complete;
    }
    list.push_back(std::move(one));
  }
  return {{"waste", std::move(list)}};
}

}  // namespace remuda::cli
