#include "top/device_table.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "snapshot/short_text.h"
#include "top/bars.h"

namespace remuda::top {
namespace {

using snapshot::State;
using snapshot::View;

constexpr double kGiB = 1 << 30;

struct Columns {
  size_t device = 6, model = 0, busy = 4, memory = 0, past = 0, watts = 0, heat = 0, clock = 0, tensor = 0, who = 0;
  size_t memory_text = 0;  ///< width of "42/48G", which stands behind its bar
  size_t gap = 1;
};

/// A step by which a table takes what room there is: a column gets this wide, if it still fits.
struct Growth {
  size_t Columns::* column;
  size_t to;
};

template <typename T>
std::string number_text(const Reading<T>& reading, double factor, Charset charset) {
  return reading.has_value() ? fmt::format("{:.0f}", static_cast<double>(reading.value()) * factor) : dash(charset);
}

std::string percent_text(const Reading<double>& reading, Charset charset) {
  return reading.has_value() ? fmt::format("{:.0f}%", 100 * reading.value()) : dash(charset);
}

std::string used_text(const View& view, Charset charset) {
  const Status& status = view.device.status;
  const auto gib = [&](const Reading<int64_t>& bytes) { return number_text(bytes, 1 / kGiB, charset); };
  if (!view.device.memory_bytes.has_value())
    return status.memory_used_bytes.has_value() ? gib(status.memory_used_bytes) + "G" : dash(charset);
  return fmt::format("{}/{}G", gib(status.memory_used_bytes), gib(view.device.memory_bytes));
}

std::optional<double> part_used(const View& view) {
  const Reading<int64_t>&used = view.device.status.memory_used_bytes, &all = view.device.memory_bytes;
  if (!used.has_value() || !all.has_value() || all.value() <= 0) return std::nullopt;
  return static_cast<double>(used.value()) / static_cast<double>(all.value());
}

std::string name_of(const Item& item, bool has_hosts) {
  return has_hosts ? item.host->name + " " + item.view->label : item.view->label;
}

std::string model_of(const View& view) { return snapshot::short_model(view.device.model, view.device.vendor); }

/// The widest of a text of each device.
template <typename Text>
size_t widest(const std::vector<const Item*>& devices, Charset charset, Text text) {
  size_t width = 0;
  for (const Item* item : devices) width = std::max(width, cells_of(text(*item), charset).size());
  return width;
}

size_t room(const Columns& columns) {
  size_t width = 1;  // of the mark in front
  for (const size_t column : {columns.device, columns.model, columns.busy, columns.memory, columns.past, columns.watts,
                              columns.heat, columns.clock, columns.tensor, columns.who})
    width += column > 0 ? columns.gap + column : 0;
  return width;
}

/// In the order of importance; a bar takes two columns and more beside its number.
Columns columns_for(size_t width, size_t device, size_t model, size_t memory, size_t who) {
  using C = Columns;
  constexpr size_t kTitle = 5;
  model = std::max(model, kTitle);
  Columns columns{.device = std::clamp<size_t>(device, 6, 20), .memory_text = memory, .gap = width >= 110 ? 2U : 1U};
  const auto most = [](size_t wanted, size_t limit) { return std::min(wanted, limit); };
  const std::array growths{Growth{&C::who, 8},
                           Growth{&C::busy, 9},
                           Growth{&C::memory, memory},
                           Growth{&C::past, 8},
                           Growth{&C::heat, 3},
                           Growth{&C::busy, 11},
                           Growth{&C::memory, memory + 5},
                           Growth{&C::watts, 4},
                           Growth{&C::model, most(model, 9)},
                           Growth{&C::who, most(who, 14)},
                           Growth{&C::past, 10},
                           Growth{&C::past, 12},
                           Growth{&C::model, most(model, 16)},
                           Growth{&C::who, most(who, 24)},
                           Growth{&C::clock, 4},
                           Growth{&C::tensor, 4},
                           Growth{&C::past, 20},
                           Growth{&C::busy, 13},
                           Growth{&C::memory, memory + 9},
                           Growth{&C::past, 30},
                           Growth{&C::busy, 17},
                           Growth{&C::memory, memory + 13},
                           Growth{&C::past, 60},
                           Growth{&C::who, most(who, 60)}};
  for (const auto& [column, to] : growths) {
    Columns wider = columns;
    if (to <= wider.*column) continue;
    wider.*column = to;
    if (room(wider) <= width) columns = wider;
  }
  return columns;
}

Tone tone_of(State state) {
  switch (state) {
    case State::idle:
    case State::foreign:
      return Tone::warn;
    case State::lost:
      return Tone::bad;
    case State::unclear:
    case State::free:
    case State::drained:
    case State::unknown:
      return Tone::quiet;
    case State::working:
    case State::held:
      break;
  }
  return Tone::plain;
}

Cells header_of(const Columns& columns, Range range, Charset charset) {
  Line line(charset);
  line.blank();
  const auto title = [&](std::string_view text, size_t width, bool is_number) {
    if (width == 0) return;
    line.blank(columns.gap);
    is_number ? line.right(text, width, Tone::quiet) : line.left(text, width, Tone::quiet);
  };
  title("DEVICE", columns.device, false);
  title("MODEL", columns.model, false);
  title("BUSY", columns.busy, columns.busy == 4);
  title("MEMORY", columns.memory, columns.memory == columns.memory_text);
  title(fmt::format("LAST {}", to_string(range)), columns.past, false);
  title("W", columns.watts, true);
  title(charset == Charset::utf8 ? "°C" : "C", columns.heat, true);
  title("MHz", columns.clock, true);
  title("TENS", columns.tensor, true);
  title("HELD BY", columns.who, false);
  return line.cells();
}

/// One device as cells.
class Row {
 public:
  Row(const Item& item, const snapshot::Histories& histories, const Columns& columns, Charset charset)
      : view_(*item.view), histories_(histories), columns_(columns), charset_(charset), line_(charset) {}

  Cells cells(const std::string& name, bool has_alert) {
    const Status& status = view_.device.status;
    line_.add(has_alert ? "!" : " ", Tone::bad);
    left(name, columns_.device, Tone::strong);
    left(model_of(view_), columns_.model, Tone::quiet);
    const Tone tone = view_.state == State::working || view_.state == State::held ? Tone::work : Tone::warn;
    measured(part(status.busy), percent_text(status.busy, charset_), columns_.busy, 4, tone);
    const auto used = part_used(view_);
    measured(used, used_text(view_, charset_), columns_.memory, columns_.memory_text,
             used && *used > 0.95 ? Tone::warn : Tone::work);
    past();
    right(number_text(status.power_watts, 1, charset_), columns_.watts);
    right(number_text(status.temperature_c, 1, charset_), columns_.heat);
    right(number_text(status.sm_clock_mhz, 1, charset_), columns_.clock);
    right(percent_text(status.tensor_active, charset_), columns_.tensor);
    left(who_text(view_, histories_), columns_.who, tone_of(view_.state));
    return line_.cells();
  }

 private:
  static std::optional<double> part(const Reading<double>& reading) {
    return reading.has_value() ? std::optional(reading.value()) : std::nullopt;
  }
  void left(const std::string& text, size_t width, Tone tone) {
    if (width > 0) line_.blank(columns_.gap).left(text, width, tone);
  }
  void right(const std::string& text, size_t width) {
    if (width > 0) line_.blank(columns_.gap).right(text, width);
  }
  /// A bar, where there is room for one, and the number.
  void measured(std::optional<double> part, const std::string& text, size_t width, size_t number, Tone tone) {
    if (width == 0) return;
    line_.blank(columns_.gap);
    if (width > number + 1) line_.add(bar(part, width - number - 1, charset_, tone)).blank();
    line_.right(text, number);
  }
  void past() {
    if (columns_.past == 0) return;
    const auto history = histories_.find(view_.key);
    const snapshot::Series* busy = history == histories_.end() ? nullptr : series_of(history->second, "busy");
    line_.blank(columns_.gap);
    line_.add(sparkline(busy ? *busy : snapshot::Series(), 1, columns_.past, charset_, Tone::work));
  }

  const View& view_;
  const snapshot::Histories& histories_;
  const Columns& columns_;
  const Charset charset_;
  Line line_;
};

}  // namespace

std::string dash(Charset charset) { return charset == Charset::utf8 ? "–" : "-"; }

std::string who_text(const View& view, const snapshot::Histories& histories) {
  std::string holders = fmt::format("{}", fmt::join(view.holders, ", "));
  const auto with = [&](const char* what) { return holders.empty() ? what : fmt::format("{}, {}", holders, what); };
  const auto idle_s = idle_for(view, histories);
  switch (view.state) {
    case State::idle:
      return with("idle") + (idle_s ? " " + snapshot::brief_time(*idle_s) : "");
    case State::held:
      return with("load unknown");
    case State::foreign:
      return with("no lease");
    case State::drained:
      return view.drained == "drained" ? view.drained : "drained: " + view.drained;
    case State::unclear:
      return "unknown";
    case State::lost:
      return with("lost");
    case State::unknown:
      return with("not seen");
    case State::free:
      return "free";
    case State::working:
      break;
  }
  return holders;
}

void add_devices(const std::vector<Item>& items, const snapshot::Histories& histories, Range range, bool has_hosts,
                 Body& body) {
  std::vector<const Item*> devices;
  for (const Item& item : items)
    if (item.kind == Kind::device) devices.push_back(&item);
  if (devices.empty()) return;
  const Charset charset = body.charset();
  const Columns columns =
      columns_for(body.width(), widest(devices, charset, [&](const Item& item) { return name_of(item, has_hosts); }),
                  widest(devices, charset, [](const Item& item) { return model_of(*item.view); }),
                  widest(devices, charset, [&](const Item& item) { return used_text(*item.view, charset); }),
                  widest(devices, charset, [&](const Item& item) { return who_text(*item.view, histories); }));
  body.add(header_of(columns, range, charset));
  for (const Item* item : devices) {
    const bool has_alert = std::ranges::any_of(item->host->alerts, [&](const snapshot::Alert& alert) {
      return alert.device == item->view->device.id && alert.is_open();
    });
    body.add_of(item->key, Row(*item, histories, columns, charset).cells(name_of(*item, has_hosts), has_alert));
  }
}

}  // namespace remuda::top
