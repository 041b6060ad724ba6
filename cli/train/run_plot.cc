#include "cli/train/run_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "cli/train/plot_panel.h"
#include "cli/train/report_text.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

using Column = std::vector<double>;
namespace svg = topology::svg;

constexpr double kTop = 92, kGap = 22, kMargin = 24;
constexpr size_t kColours = 8;
constexpr double kMostOverMean =
    3;  // of the largest mean: longer steps end at the upper edge, so that the rest is seen

/// Where the time of a step goes, from below to above.
struct TimeBand {
  const char *key, *name;
};
constexpr std::array kPhases{TimeBand{"compute_s", "compute"}, TimeBand{"update_s", "update"},
                             TimeBand{"data_s", "data"}, TimeBand{"communication_s", "communication"},
                             TimeBand{"wait_s", "waiting for other devices"}};

struct History {
  double steps_per_point = 1;
  Column steps, loss, low, high, longest_s;
  std::array<Column, kPhases.size()> phases;
  std::vector<Column> shares;

  /// All columns have as many points.
  bool is_whole() const {
    const auto fits = [this](const Column& column) { return column.size() == steps.size(); };
    return !steps.empty() && fits(loss) && fits(low) && fits(high) && fits(longest_s) &&
           std::ranges::all_of(phases, fits) && std::ranges::all_of(shares, fits) &&
           std::ranges::all_of(steps, [](double step) { return std::isfinite(step); }) &&
           std::ranges::is_sorted(steps, std::less_equal<>());
  }
};

std::optional<History> history_of(const Json& report) {
  const Json json = report.value("history", Json());
  if (!json.is_object()) return std::nullopt;
  History history{.steps_per_point = workers::number_field(json, "steps_per_point", 1),
                  .steps = workers::numbers_field(json, "last_step"),
                  .loss = workers::numbers_field(json, "loss"),
                  .low = workers::numbers_field(json, "loss_low"),
                  .high = workers::numbers_field(json, "loss_high"),
                  .longest_s = workers::numbers_field(json, "longest_s")};
  for (size_t i = 0; i < kPhases.size(); ++i) history.phases[i] = workers::numbers_field(json, kPhases[i].key);
  for (const Json& share : json.value("share", Json::array()))
    history.shares.push_back(workers::numbers_field({{"share", share}}, "share"));
  if (!history.is_whole()) return std::nullopt;
  return history;
}

Column scaled(Column values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

double largest(const Column& values) { return Range::of(values).high; }

class RunPicture {
 public:
  RunPicture(const Json& report, const std::string& name, const History& history)
      : report_(report), name_(name), history_(history), x_(Range::of(history.steps)) {
    if (x_.low == x_.high) x_ = x_.rounded();
  }

  std::string paint() {
    loss();
    shares();
    times();
    const double height = top_ - kGap + kMargin;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
        "aria-labelledby=\"title desc\">\n<title id=\"title\">{2}</title>\n<desc "
        "id=\"desc\">{3}</desc>\n<style>{4}{5}</style>\n{6}{7}{8}{9}</svg>\n",
        svg::number(PlotPanel::kWidth), svg::number(height), svg::escape("Training run " + name_),
        svg::escape(subtitle()), svg::kStyle, kPlotStyle, svg::rectangle({0, 0, PlotPanel::kWidth, height}, 12, "page"),
        svg::text(kMargin, 40, "host", "start", svg::fit(name_, PlotPanel::kWidth - 2 * kMargin, 21)),
        svg::text(kMargin, 64, "sub", "start", svg::fit(subtitle(), PlotPanel::kWidth - 2 * kMargin, 13)), panels_);
  }

 private:
  std::string subtitle() const {
    const double steps = workers::number_field(report_, "steps"),
                 rate = workers::number_field(report_, "samples_per_s");
    std::string text = fmt::format("{:.0f} steps", steps);
    if (rate > 0) text += fmt::format(" · {:.0f} samples/s", rate);
    if (history_.steps_per_point > 1)
      text += fmt::format(" · each point is the mean of {:.0f} steps", history_.steps_per_point);
    return text;
  }

  void add(const PlotPanel& panel) {
    panels_ += panel.svg();
    top_ = panel.bottom() + kGap;
  }

  void loss() {
    const bool is_mean = history_.steps_per_point > 1;
    std::vector<LegendItem> legend{{is_mean ? "mean" : "each step", "s0"}};
    if (is_mean) legend.push_back({"lowest to highest", "band c0", true});
    Column both = history_.low;
    both.insert(both.end(), history_.high.begin(), history_.high.end());
    PlotPanel panel({"Loss, mean of a step's samples or tokens", x_, Range::of(both).rounded()}, legend, top_, 0);
    if (is_mean) panel.area(history_.steps, history_.low, history_.high, "band c0");
    panel.line(history_.steps, history_.loss, "s0");
    add(panel);
  }

  /// More ranks than there are colours begin again with dashes.
  static std::string line_of(size_t rank) {
    constexpr std::array kStrokes{"", " dashed", " dotted"};
    return fmt::format("s{}{}", rank % kColours, kStrokes[rank / kColours % kStrokes.size()]);
  }

  void shares() {
    const std::vector<std::string> names = device_names(report_);
    std::vector<LegendItem> legend;
    double most = 0;
    for (const Column& share : history_.shares) most = std::max(most, largest(share));
    for (size_t rank = 0; rank < history_.shares.size(); ++rank)
      legend.push_back({rank < names.size() ? svg::fit(names[rank], 200, 11) : "?", line_of(rank)});
    PlotPanel panel({"Share of the samples, %", x_, Range{0, 100 * most}.rounded()}, legend, top_, 1);
    for (size_t rank = 0; rank < history_.shares.size(); ++rank)
      panel.line(history_.steps, scaled(history_.shares[rank], 100), line_of(rank));
    add(panel);
  }

  void times() {
    std::vector<Column> stacked{Column(history_.steps.size(), 0)};  // from 0 to the whole step, in seconds
    for (const Column& phase : history_.phases) {
      stacked.push_back(stacked.back());
      for (size_t i = 0; i < phase.size(); ++i) stacked.back()[i] += phase[i];
    }
    const double mean_s = largest(stacked.back());
    const double high_s = std::min(std::max(mean_s, largest(history_.longest_s)), kMostOverMean * mean_s);
    const double unit = high_s < 1 ? 1000 : 1;
    std::vector<LegendItem> legend;
    for (size_t i = 0; i < kPhases.size(); ++i) legend.push_back({kPhases[i].name, fmt::format("c{}", i), true});
    if (history_.steps_per_point > 1) legend.push_back({"longest step", "longest"});
    PlotPanel panel({fmt::format("Time of a step, {}, mean of the devices", unit == 1 ? "s" : "ms"), x_,
                     Range{0, high_s * unit}.rounded()},
                    legend, top_, 2);
    for (size_t i = 0; i < kPhases.size(); ++i)
      panel.area(history_.steps, scaled(stacked[i], unit), scaled(stacked[i + 1], unit), fmt::format("c{}", i));
    if (history_.steps_per_point > 1) panel.line(history_.steps, scaled(history_.longest_s, unit), "longest");
    add(panel);
  }

  const Json& report_;
  const std::string& name_;
  const History& history_;
  Range x_;
  double top_ = kTop;
  std::string panels_;
};

}  // namespace

Result<std::string> run_plot_svg(const Json& report, const std::string& name) {
  const auto history = history_of(report);
  if (!history)
    return usage_error(
        fmt::format("{} has no history of its steps to draw; remuda train writes one, of two steps or "
                    "more",
                    name));
  return RunPicture(report, name, *history).paint();
}

}  // namespace remuda::cli
