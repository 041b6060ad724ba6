#include "top/items.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include "base/letter_case.h"
#include "base/text.h"
#include "snapshot/sentences.h"

namespace remuda::top {
namespace {

using snapshot::Alert;
using snapshot::Host;
using snapshot::Lease;
using snapshot::Seen;
using snapshot::View;
using snapshot::Waiting;

const View* view_with(const Host& host, const std::string& id) {
  const auto found = std::ranges::find_if(host.devices, [&](const View& view) { return view.device.id == id; });
  return found == host.devices.end() ? nullptr : &*found;
}

/// All that a filter looks at.
std::string words_of(const Item& item) {
  std::string words = item.host->name + "\n" + item.text;
  const auto add = [&](const std::string& text) { words += "\n" + text; };
  if (item.view) {
    add(item.view->label), add(item.view->model), add(item.view->drained), add(to_string(item.view->state));
    for (const std::string& holder : item.view->holders) add(holder);
  }
  if (item.alert) add(item.alert->rule), add(item.alert->text);
  if (item.waiting) add(item.waiting->why);
  if (!item.leases.empty()) add(devices_text(item));
  return lower(words);
}

/// What devices are sorted by: larger ones come first, and what is not known last.
double rank_of(const View& view, Order order) {
  const auto value = [](const auto& reading) {
    return reading.has_value() ? static_cast<double>(reading.value()) : -INFINITY;
  };
  const Status& status = view.device.status;
  switch (order) {
    case Order::busy:
      return value(status.busy);
    case Order::memory:
      return value(status.memory_used_bytes);
    case Order::power:
      return value(status.power_watts);
    case Order::temperature:
      return value(status.temperature_c);
    case Order::device:
    case Order::user:
      break;
  }
  return 0;
}

void sort(const Choice& choice, std::vector<Item>& devices) {
  const auto user = [](const Item& item) { return item.view->holders.empty() ? "\x7f" : item.view->holders[0]; };
  std::ranges::stable_sort(devices, [&](const Item& a, const Item& b) {
    if (choice.order == Order::user) return user(a) < user(b);
    return rank_of(*a.view, choice.order) > rank_of(*b.view, choice.order);
  });
  if (choice.is_reversed) std::ranges::reverse(devices);
}

/// A job's leases are one item; so are the devices that a user has without one.
void add_jobs(const Host& host, std::vector<Item>& items) {
  std::map<std::string, size_t> known;
  for (const Lease& lease : host.leases) {
    if (lease.job == 0 && lease.holder.empty()) continue;
    const std::string who = lease.job != 0 ? std::to_string(lease.job) : "no lease " + lease.holder;
    const auto [place, is_new] = known.emplace(who, items.size());
    if (is_new)
      items.push_back({.kind = Kind::job,
                       .key = fmt::format("job {} {}", host.name, who),
                       .text = snapshot::job_text(lease.who(), lease.name, lease.job),
                       .host = &host,
                       .job = lease.job});
    items[place->second].leases.push_back(&lease);
  }
}

}  // namespace

std::vector<Item> items_of(const Seen& seen, const Choice& choice) {
  std::vector<Item> items, alerts, jobs, waiting;
  for (const Host& host : seen.hosts) {
    for (const View& view : host.devices)
      items.push_back({.kind = Kind::device, .key = view.key, .text = view.label, .host = &host, .view = &view});
    for (const Alert& alert : host.alerts)
      alerts.push_back({.kind = Kind::alert,
                        .key = fmt::format("alert {} {} {}", host.name, alert.rule, alert.device),
                        .text = alert.rule,
                        .host = &host,
                        .view = view_with(host, alert.device),
                        .alert = &alert});
    add_jobs(host, jobs);
    for (const Waiting& job : host.waiting)
      waiting.push_back({.kind = Kind::waiting,
                         .key = fmt::format("waiting {} {}", host.name, job.id),
                         .text = snapshot::job_text(job.user, job.name, job.id),
                         .host = &host,
                         .waiting = &job,
                         .job = job.id});
  }
  sort(choice, items);
  for (auto* more : {&alerts, &jobs, &waiting}) std::ranges::move(*more, std::back_inserter(items));
  if (const std::string filter = lower(choice.filter); !filter.empty())
    std::erase_if(items, [&](const Item& item) { return words_of(item).find(filter) == std::string::npos; });
  return items;
}

std::string devices_text(const Item& job) {
  std::map<std::string, std::vector<int>> numbers;
  std::vector<std::string> texts;
  for (const Lease* lease : job.leases) {
    const View* const view = view_with(*job.host, lease->device);
    if (view)
      numbers[to_string(view->device.kind)].push_back(view->device.index);
    else
      texts.push_back(lease->device);
  }
  for (auto& [kind, indices] : numbers) {
    std::ranges::sort(indices);
    texts.push_back(fmt::format("{}:{}", kind, index_ranges(indices)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace remuda::top
