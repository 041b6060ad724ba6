#include "top/job_tables.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/duration.h"
#include "snapshot/sentences.h"
#include "top/device_table.h"

namespace remuda::top {
namespace {

using snapshot::Lease;

/// Of one kind.
std::vector<const Item*> of_kind(const std::vector<Item>& items, Kind kind) {
  std::vector<const Item*> these;
  for (const Item& item : items)
    if (item.kind == kind) these.push_back(&item);
  return these;
}

void add_text_of(const Item& item, std::string_view text, size_t indent, Tone tone, Body& body) {
  for (const Cells& line : wrapped(text, body.width(), indent, body.charset(), tone)) body.add_of(item.key, line);
}

std::string part_text(const std::optional<double>& part, Charset charset) {
  return part ? fmt::format("{:.0f}%", 100 * *part) : dash(charset);
}

/// A table of texts with a width for each column; the one that grows has what the others leave.
struct Layout {
  size_t job = 3, user = 4, name = 4, devices = 7, held = 4, busy = 4, effective = 4, left = 4;
  size_t gap = 1;

  size_t others() const { return 2 + job + user + devices + held + busy + effective + left + 7 * gap; }
};

struct Texts {
  const Item* item;
  std::string job, user, name, devices, held, busy, effective, left;
};

Texts texts_of(const Item& item, double now_s, Charset charset) {
  const Lease& lease = *item.leases.front();
  const snapshot::Use use = use_of(item);
  const std::string none = dash(charset);
  return {.item = &item,
          .job = item.job != 0 ? std::to_string(item.job) : none,
          .user = lease.who(),
          .name = item.job != 0 ? lease.name : "no lease",
          .devices = devices_text(item),
          .held = lease.since_s > 0 ? duration_text(now_s - lease.since_s) : none,
          .busy = part_text(use.busy, charset),
          .effective = part_text(use.effective, charset),
          .left = lease.until_s > 0 ? duration_text(lease.until_s - now_s) : none};
}

Layout layout_of(const std::vector<Texts>& rows, size_t width, Charset charset) {
  Layout layout{.gap = width >= 100 ? 2U : 1U};
  const auto widen = [&](size_t& column, const std::string& text, size_t most) {
    column = std::clamp(cells_of(text, charset).size(), column, std::max(column, most));
  };
  for (const Texts& row : rows) {
    widen(layout.job, row.job, 8), widen(layout.user, row.user, width / 8);
    widen(layout.devices, row.devices, width / 5), widen(layout.held, row.held, 12);
    widen(layout.left, row.left, 12), widen(layout.name, row.name, 40);
  }
  // Where there is too little room, what can be had elsewhere goes first.
  for (size_t* column : {&layout.left, &layout.effective, &layout.busy, &layout.devices, &layout.held})
    if (layout.others() + 8 > width) *column = 0;
  layout.name = std::min(layout.name, width - std::min(width, layout.others()));
  return layout;
}

Cells row_of(const Texts& row, const Layout& layout, Tone tone, Charset charset) {
  Line line(charset);
  line.blank(2).right(row.job, layout.job, tone);
  const auto left = [&](const std::string& text, size_t width) {
    if (width > 0) line.blank(layout.gap).left(text, width, tone);
  };
  const auto right = [&](const std::string& text, size_t width) {
    if (width > 0) line.blank(layout.gap).right(text, width, tone);
  };
  left(row.user, layout.user);
  left(row.name, layout.name);
  left(row.devices, layout.devices);
  right(row.held, layout.held);
  right(row.busy, layout.busy);
  right(row.effective, layout.effective);
  right(row.left, layout.left);
  return line.cells();
}

}  // namespace

std::string since_text(double since_s, double now_s) {
  return since_s > 0 ? "for " + duration_text(now_s - since_s) : "";
}

std::string attention_text(const snapshot::Alert& alert, double now_s) {
  std::string text = alert.acknowledged_by.empty() ? "" : "acknowledged by " + alert.acknowledged_by;
  if (alert.silenced_until_s > 0)
    text += (text.empty() ? "silenced for " : ", silenced for ") + duration_text(alert.silenced_until_s - now_s);
  return text;
}

snapshot::Use use_of(const Item& job) {
  const auto mean = [&](std::optional<double> snapshot::Use::* part) -> std::optional<double> {
    double sum = 0;
    int known = 0;
    for (const Lease* lease : job.leases)
      if (lease->use.*part) sum += *(lease->use.*part), ++known;
    return known > 0 ? std::optional(sum / known) : std::nullopt;
  };
  snapshot::Use use{.busy = mean(&snapshot::Use::busy), .effective = mean(&snapshot::Use::effective)};
  for (const Lease* lease : job.leases) {
    use.is_cost_whole = use.is_cost_whole && lease->use.is_cost_whole && lease->use.cost;
    if (!lease->use.cost) continue;
    use.cost = use.cost.value_or(0) + *lease->use.cost;
    use.currency = lease->use.currency;
  }
  return use;
}

void add_alerts(const std::vector<Item>& items, double now_s, Body& body) {
  const auto alerts = of_kind(items, Kind::alert);
  if (alerts.empty()) return;
  body.add_title("ALERTS");
  for (const Item* item : alerts) {
    const snapshot::Alert& alert = *item->alert;
    const std::string where = item->view ? item->view->label : alert.device;
    const std::string since = since_text(alert.since_s, now_s), attention = attention_text(alert, now_s);
    add_text_of(
        *item,
        fmt::format("{} {}: {}{}{}: {}{}{}", alert.is_open() ? "!" : " ", where, alert.rule, since.empty() ? "" : " ",
                    since, alert.text, alert.command.empty() ? "" : "; " + alert.command,
                    attention.empty() ? "" : "; " + attention),
        4, alert.is_open() ? Tone::warn : Tone::quiet, body);
  }
}

void add_jobs(const std::vector<Item>& items, double now_s, Body& body) {
  const Charset charset = body.charset();
  std::vector<Texts> rows;
  for (const Item* item : of_kind(items, Kind::job)) rows.push_back(texts_of(*item, now_s, charset));
  if (rows.empty()) return;
  const Layout layout = layout_of(rows, body.width(), charset);
  const Texts header{.item = nullptr,
                     .job = "JOB",
                     .user = "USER",
                     .name = "NAME",
                     .devices = "DEVICES",
                     .held = "HELD",
                     .busy = "BUSY",
                     .effective = "EFF.",
                     .left = "LEFT"};
  if (!body.lines().empty()) body.add({});
  body.add(row_of(header, layout, Tone::quiet, charset));
  for (const Texts& row : rows)
    body.add_of(row.item->key, row_of(row, layout, row.item->job != 0 ? Tone::plain : Tone::warn, charset));
}

void add_runs(const std::vector<Item>& items, Body& body) {
  bool is_first = true;
  for (const Item* item : of_kind(items, Kind::job))
    for (const snapshot::Run& run : item->host->runs) {
      if (run.job != item->job) continue;
      if (std::exchange(is_first, false)) body.add_title("RUNS");
      body.add_wrapped("  " + run_sentence(run), 4, Tone::plain);
    }
}

void add_queue(const std::vector<Item>& items, double now_s, Body& body) {
  const auto waiting = of_kind(items, Kind::waiting);
  if (waiting.empty()) return;
  body.add_title("QUEUE");
  for (const Item* item : waiting)
    add_text_of(*item, "  " + queue_sentence(*item->waiting, now_s), 4, Tone::plain, body);
}

}  // namespace remuda::top
