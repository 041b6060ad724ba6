#include "top/details.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration.h"
#include "base/text.h"
#include "snapshot/sentences.h"
#include "top/bars.h"
#include "top/device_table.h"
#include "top/job_tables.h"

namespace remuda::top {
namespace {

using snapshot::Lease;
using snapshot::View;

/// Columns of the names, which stand in front of the values. Some, on the narrowest screen, too.
size_t names_of(const Body& body) { return std::clamp<size_t>(body.width() / 3, 3, 24); }
size_t values_of(const Body& body) { return body.width() > names_of(body) ? body.width() - names_of(body) : 1; }

void add_value(const std::string& name, const std::string& value, Tone tone, Body& body) {
  const size_t names = names_of(body);
  Line head(body.charset());
  head.blank(2).left(name, names - 3, Tone::quiet).blank();
  bool is_first = true;
  for (const Cells& line : wrapped(value, values_of(body), 0, body.charset(), tone)) {
    body.add(is_first ? Line(head).add(line).cells() : Line(body.charset()).blank(names).add(line).cells());
    is_first = false;
  }
}

/// The value; or the reason why there is none. What nobody asked for is not there.
template <typename T, typename Text>
void add_reading(const std::string& name, const Reading<T>& reading, Text text, Body& body) {
  if (reading.has_value())
    add_value(name, text(reading.value()), Tone::plain, body);
  else if (const std::string reason = snapshot::reason_of(reading.missing()); !reason.empty())
    add_value(name, dash(body.charset()) + " " + reason, Tone::quiet, body);
}

void add_readings(const Device& device, Body& body) {
  const Status& status = device.status;
  const auto percent = [](double part) { return fmt::format("{:.0f} %", 100 * part); };
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  const auto unit = [](const char* word) {
    return [word](auto value) { return fmt::format("{:.0f} {}", static_cast<double>(value), word); };
  };
  const auto count = [](auto value) { return fmt::format("{}", value); };
  add_reading("busy", status.busy, percent, body);
  add_reading("memory in use", status.memory_used_bytes, bytes, body);
  add_reading("memory", device.memory_bytes, bytes, body);
  add_reading("memory busy", status.memory_busy, percent, body);
  add_reading("multiprocessors active", status.sm_active, percent, body);
  add_reading("tensor cores active", status.tensor_active, percent, body);
  add_reading("bandwidth in use", status.dram_active, percent, body);
  add_reading("power", status.power_watts, unit("W"), body);
  add_reading("power limit", device.power_limit_watts, unit("W"), body);
  add_reading("temperature", status.temperature_c, unit(body.charset() == Charset::utf8 ? "°C" : "C"), body);
  add_reading("clock", status.sm_clock_mhz, unit("MHz"), body);
  add_reading("memory clock", status.memory_clock_mhz, unit("MHz"), body);
  add_reading(
      "clocks held down by", status.throttle,
      [](const std::vector<std::string>& why) {
        return why.empty() ? std::string("nothing") : fmt::format("{}", fmt::join(why, ", "));
      },
      body);
  add_reading("memory errors", status.ecc_uncorrected, count, body);
  add_reading("last fatal error", status.xid, count, body);
}

void add_histories(const View& view, const snapshot::Histories& histories, Range range, Body& body) {
  const auto history = histories.find(view.key);
  if (history == histories.end()) return;
  const double memory = static_cast<double>(view.device.memory_bytes.value_or(0));
  const std::array<std::tuple<const char*, const char*, double>, 4> shown{
      std::tuple("busy", "busy", 1.0), std::tuple("memory in use", "memory_used_bytes", memory),
      std::tuple("power", "power_watts", view.device.power_limit_watts.value_or(0)),
      std::tuple("temperature", "temperature_c", 100.0)};
  const size_t names = names_of(body);
  body.add_title(fmt::format("LAST {}", to_string(range)));
  for (const auto& [name, measure, most] : shown) {
    const snapshot::Series* const series = series_of(history->second, measure);
    if (!series) continue;
    double full = most;
    for (const auto& value : *series) full = most > 0 ? most : std::max(full, value.value_or(0));
    const bool is_known = std::ranges::any_of(*series, [](const auto& value) { return value.has_value(); });
    Line line(body.charset());
    line.blank(2).left(name, names - 3, Tone::quiet).blank();
    if (is_known)
      line.add(sparkline(*series, full, values_of(body), body.charset(), Tone::work));
    else
      line.add("not known for this time", Tone::quiet);
    body.add(line.cells());
  }
}

void add_lease(const Lease& lease, double now_s, Body& body) {
  std::string text = lease.job != 0          ? fmt::format("job {}, {}'s {}", lease.job, lease.user, lease.name)
                     : !lease.barred.empty() ? lease.barred
                                             : lease.holder + ", without a lease";
  if (const std::string since = since_text(lease.since_s, now_s); !since.empty()) text += ", " + since;
  if (lease.share < 1) text += fmt::format(", {:.0f} % of it", 100 * lease.share);
  if (lease.until_s > 0) text += fmt::format(", {} left", duration_text(lease.until_s - now_s));
  add_value("held by", text, Tone::strong, body);
}

void add_processes(const Reading<std::vector<Process>>& processes, Body& body) {
  if (!processes.has_value()) return;
  for (const Process& process : processes.value())
    add_value(fmt::format("process {}", process.pid),
              fmt::format("{}{}{}", process.user.value_or("unknown user"),
                          process.memory_bytes.has_value()
                              ? ", " + human_bytes(static_cast<double>(process.memory_bytes.value()))
                              : "",
                          process.command.has_value() ? ": " + process.command.value() : ""),
              Tone::plain, body);
}

void add_device(const View& view, const snapshot::Histories& histories, Range range, double now_s, Body& body) {
  body.add_title(fmt::format("{}  {}, {}", view.label, view.model, to_string(view.state)));
  for (const Lease& lease : view.leases) add_lease(lease, now_s, body);
  if (!view.drained.empty()) add_value("drained", view.drained, Tone::plain, body);
  add_readings(view.device, body);
  add_processes(view.device.status.processes, body);
  add_value("id", view.device.id, Tone::quiet, body);
  add_histories(view, histories, range, body);
}

void add_run(const snapshot::Run& run, Body& body) {
  add_value("run", run_sentence(run), Tone::plain, body);
  const auto percent = [&](const std::optional<double>& part) {
    return part ? fmt::format("{:.0f} %", 100 * *part) : dash(body.charset());
  };
  for (const snapshot::Run::Part& part : run.parts)
    add_value(part.device,
              fmt::format("{} of each step; waits {} of the time", percent(part.share), percent(part.waiting)),
              Tone::plain, body);
}

void add_job(const Item& item, double now_s, Body& body) {
  const Lease& lease = *item.leases.front();
  const auto part = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.0f} %", 100 * *value) : "not known";
  };
  const snapshot::Use use = use_of(item);
  body.add_title(item.job != 0 ? item.text : item.text + " uses devices without a lease");
  add_value("devices", devices_text(item), Tone::strong, body);
  if (lease.since_s > 0) add_value("held", since_text(lease.since_s, now_s), Tone::plain, body);
  if (item.job == 0) return;
  add_value("left", lease.until_s > 0 ? duration_text(lease.until_s - now_s) : "no limit", Tone::plain, body);
  add_value("busy", part(use.busy), Tone::plain, body);
  add_value("effective", part(use.effective), Tone::plain, body);
  if (lease.share < 1) add_value("share", part(lease.share), Tone::plain, body);
  if (const std::string cost = cost_text(use); !cost.empty()) add_value("cost so far", cost, Tone::plain, body);
  for (const snapshot::Run& run : item.host->runs)
    if (run.job == item.job) add_run(run, body);
  add_value("more", fmt::format("remuda show {}", item.job), Tone::quiet, body);
}

void add_alert(const Item& item, double now_s, Body& body) {
  const snapshot::Alert& alert = *item.alert;
  body.add_title(alert.rule);
  add_value("device", item.view ? item.view->label : alert.device, Tone::strong, body);
  add_value("what", alert.text, Tone::plain, body);
  if (alert.since_s > 0) add_value("since", since_text(alert.since_s, now_s), Tone::plain, body);
  if (!alert.value.empty()) add_value("value", alert.value, Tone::plain, body);
  if (!alert.limit.empty()) add_value("limit", alert.limit, Tone::plain, body);
  if (!alert.is_open()) add_value("attention", attention_text(alert, now_s), Tone::plain, body);
  if (!alert.command.empty()) add_value("to act", alert.command, Tone::strong, body);
}

}  // namespace

void add_details(const Item& item, const snapshot::Histories& histories, Range range, double now_s, Body& body) {
  switch (item.kind) {
    case Kind::device:
      return add_device(*item.view, histories, range, now_s, body);
    case Kind::job:
      return add_job(item, now_s, body);
    case Kind::alert:
      return add_alert(item, now_s, body);
    case Kind::waiting:
      body.add_title(item.text);
      body.add_wrapped("  " + queue_sentence(*item.waiting, now_s), 2, Tone::plain);
      return add_value("more", fmt::format("remuda why {}", item.job), Tone::quiet, body);
  }
}

}  // namespace remuda::top
