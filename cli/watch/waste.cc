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

/// Half a device for an hour is half an hour.
monitor::LeaseUse weighted(monitor::LeaseUse use) {
  for (double* const seconds : {&use.held_s, &use.busy_s, &use.busy_known_s, &use.effective_s, &use.effective_known_s,
                                &use.waiting_s, &use.waiting_known_s, &use.energy_known_s, &use.throttled_s})
    *seconds *= use.share;
  return use;
}

}  // namespace

std::vector<Waste> waste_of(std::span<const monitor::LeaseUse> uses, WasteBy by, const policy::Policy& policy) {
  // A new pool numbers its jobs anew: one with the same number that began at another time may be another one.
  using Turn = std::pair<int64_t, double>;
  std::map<std::pair<std::string, Turn>, Waste> rows;
  std::map<std::pair<std::string, Turn>, std::set<Turn>> turns;
  for (const monitor::LeaseUse& use : uses) {
    if (use.pod.empty() == (by == WasteBy::pod)) continue;
    const Turn turn(use.job, use.since_s);
    const auto key = std::pair(use.user + use.pod, by == WasteBy::job ? turn : Turn());
    Waste& row = rows[key];
    row.user = use.user;
    row.pod = use.pod;
    row.job = key.second.first;
    turns[key].insert(turn);
    row.jobs = static_cast<int>(turns[key].size());
    monitor::add(weighted(use), row.sum);
    row.money.add(money_of(use, policy.tariffs));
  }
  std::vector<Waste> sorted;
  for (auto& [_, row] : rows) sorted.push_back(std::move(row));
  std::ranges::stable_sort(sorted, std::greater{}, &Waste::idle_s);
  return sorted;
}

std::string waste_text(const std::vector<Waste>& rows, WasteBy by, const std::string& currency, size_t width) {
  if (rows.empty() && by == WasteBy::pod)
    return "No pod was watched while it had a device; `remuda watch` keeps that, where an agent sees a kubelet\n";
  if (rows.empty()) return "Nobody was watched while holding a device; `remuda watch` keeps that\n";
  const auto [first, second] = by == WasteBy::pod   ? std::pair("NAMESPACE", "POD")
                               : by == WasteBy::job ? std::pair("JOB", "USER")
                                                    : std::pair("USER", "JOBS");
  std::vector<std::string> header{first, second, "HELD", "BUSY", "WAITING", "EFFECTIVE", "IDLE", "UNKNOWN", "KWH"};
  if (!currency.empty()) header.insert(header.end(), {printable(currency), "WASTED"});
  Table table(header);
  for (const Waste& row : rows) {
    const size_t slash = row.pod.find('/');
    auto [one, other] = by == WasteBy::job ? std::pair(std::to_string(row.job), row.user)
                                           : std::pair(row.user, std::to_string(row.jobs));
    if (by == WasteBy::pod)
      one = slash == std::string::npos ? "-" : row.pod.substr(0, slash), other = row.pod.substr(slash + 1);
    std::vector<std::string> cells{
        printable(one),
        printable(other),
        hours(row.sum.held_s),
        share_text(row.sum.busy_s, row.sum.busy_known_s),
        share_text(row.sum.waiting_s, row.sum.waiting_known_s),
        share_text(row.sum.effective_s, row.sum.effective_known_s),
        hours(row.idle_s()),
        hours(row.sum.held_s - row.sum.busy_known_s),
        row.sum.energy_known_s > 0 ? fmt::format("{:.2f}", row.sum.energy_joules / 3.6e6) : "-"};
    if (!currency.empty())
      cells.insert(cells.end(), {monitor::money_text(row.money.cost), monitor::money_text(row.money.wasted)});
    table.add(std::move(cells));
  }
  std::string text =
      table.text(width) +
      "Hours of devices, as far as `remuda watch` ran; half a device for an hour is half an hour. A lease counts "
      "whole, "
      "from\n"
      "its beginning on, also where that was before --since; one of a job that was queued again is one more job. IDLE: "
      "held,\n"
      "and no kernel ran. EFFECTIVE: share of the known time, weighted by how much of the device the work used. "
      "WAITING:\n"
      "for others of a run, as that reports\n";
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
    if (row.pod.empty())
      one["user"] = row.user, one["jobs"] = row.jobs;
    else
      one["pod"] = row.pod;
    if (row.job != 0) one["job"] = row.job;
    one["idle_s"] = row.idle_s();
    for (const char* key : {"model", "share"}) one.erase(key);
    const auto& [cost, wasted] = row.money;
    if (cost.is_known || wasted.is_known) one["currency"] = currency;
    if (cost.is_known) one["cost"] = cost.value, one["cost_is_complete"] = cost.is_complete;
    if (wasted.is_known) one["wasted"] = wasted.value, one["wasted_is_complete"] = wasted.is_complete;
    list.push_back(std::move(one));
  }
  return {{"waste", std::move(list)}};
}

}  // namespace remuda::cli
