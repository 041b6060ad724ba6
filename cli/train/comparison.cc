#include "cli/train/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <utility>

#include "base/table.h"
#include "base/text.h"
#include "cli/train/report_text.h"
#include "cli/train/train_progress.h"
#include "measure/paired.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

constexpr double kConfidence = 0.95;
constexpr double kSame = 1e-6;  // sums of float32 in another order differ by so much
constexpr size_t kTextWidth = 80;

/// A figure of the reports that runs are compared by.
struct Figure {
  const char* key;     ///< of the report
  const char* name;    ///< for people
  bool is_percentage;  ///< compared by points, not by factors
  double (*read)(const Json& report, const char* key);
};

double number(const Json& report, const char* key) { return workers::number_field(report, key, NAN); }
double last_number(const Json& report, const char* key) {
  const std::vector<double> all = workers::numbers_field(report, key);
  return all.empty() ? NAN : all.back();
}

constexpr std::array<Figure, 4> kFigures{{{"samples_per_s", "samples/s", false, number},
                                          {"loss_per_epoch", "training loss", false, last_number},
                                          {"test_loss", "test loss", false, number},
                                          {"test_accuracy", "test accuracy", true, number}}};

/// The reports of the pairs of which both runs were made.
std::vector<std::pair<const Json*, const Json*>> whole_pairs(const Comparison& comparison) {
  std::vector<std::pair<const Json*, const Json*>> pairs;
  for (const ComparedRun& a : comparison.runs)
    for (const ComparedRun& b : comparison.runs)
      if (a.pair == b.pair && !a.is_b && b.is_b && !a.report.is_null() && !b.report.is_null())
        pairs.emplace_back(&a.report, &b.report);
  return pairs;
}

/// What a figure is worth; nothing where a report lacks it, or there are too few pairs.
std::optional<measure::PairedDifference> difference_of(const Comparison& comparison, const Figure& figure) {
  std::vector<double> a, b;
  for (const auto& [one, other] : whole_pairs(comparison)) {
    a.push_back(figure.read(*one, figure.key));
    b.push_back(figure.read(*other, figure.key));
    const double least = std::min(a.back(), b.back());
    if (!std::isfinite(a.back() + b.back()) || (!figure.is_percentage && least <= 0)) return std::nullopt;
  }
  if (a.size() < 2) return std::nullopt;
  return figure.is_percentage ? measure::paired_difference(a, b, kConfidence)
                              : measure::paired_ratio(a, b, kConfidence);
}

bool is_same(const measure::PairedDifference& found) {
  return std::max(std::abs(found.low), std::abs(found.high)) <= kSame;
}

std::string change(double part, const Figure& figure) {
  const std::string text = fmt::format("{:+.1f}", 100 * part);
  return (text == "-0.0" || text == "+0.0" ? "0.0" : text) + (figure.is_percentage ? "" : " %");
}

std::string value_text(double value, const Figure& figure) {
  if (figure.is_percentage) return fmt::format("{:.2f} %", 100 * value);
  return &figure == &kFigures[0] ? rate_text(value) : fmt::format("{:.4f}", value);
}

std::string verdict(const measure::PairedDifference& found) {
  if (is_same(found)) return "the same";
  return found.is_real() ? "real" : "not sure";
}

/// Whether B is faster, for people.
std::string speed_sentence(const Comparison& comparison, const std::optional<measure::PairedDifference>& found) {
  const size_t pairs = whole_pairs(comparison).size();
  if (pairs < 2)
    return fmt::format("There {} of which both runs were made, which says nothing about other runs.",
                       pairs == 1 ? "is one pair" : "is no pair");
  if (!found) return "The runs have too few steps to measure samples/s: all but the first three are timed.";
  const double low = 100 * found->low, high = 100 * found->high;
  if (!found->is_real())
    return fmt::format(
        "Whether B is faster or slower is not sure: with 95 % confidence it makes between {:.1f} % fewer and {:.1f} % "
        "more samples/s. More --repeats narrow that.",
        -low, high);
  const bool faster = low > 0;
  return fmt::format("B is {}: with 95 % confidence it makes {:.1f} % to {:.1f} % {} samples/s.",
                     faster ? "faster" : "slower", std::min(std::abs(low), std::abs(high)),
                     std::max(std::abs(low), std::abs(high)), faster ? "more" : "fewer");
}

}  // namespace

std::vector<ComparedRun> runs_of(int pairs, uint64_t first_seed) {
  std::vector<ComparedRun> runs;
  for (int pair = 0; pair < pairs; ++pair)
    for (const bool second : {false, true})
      runs.push_back(
          {.is_b = second != (pair % 2 == 1), .pair = pair, .seed = first_seed + uint64_t(pair), .report = {}});
  return runs;
}

Json to_json(const Comparison& comparison) {
  Json differences = Json::object(), runs = Json::array();
  for (const Figure& figure : kFigures)
    if (const auto found = difference_of(comparison, figure))
      differences[figure.key] = {{"a", found->mean_a},
                                 {"b", found->mean_b},
                                 {"difference", found->mean},
                                 {"low", found->low},
                                 {"high", found->high},
                                 {"confidence", kConfidence},
                                 {"is_real", found->is_real() && !is_same(*found)}};
  for (const ComparedRun& run : comparison.runs)
    if (!run.report.is_null())
      runs.push_back({{"way", run.is_b ? "B" : "A"}, {"pair", run.pair}, {"seed", run.seed}, {"report", run.report}});
  return {{"compared", comparison.settings},
          {"pairs", whole_pairs(comparison).size()},
          {"stopped", comparison.stopped},
          {"differences", std::move(differences)},
          {"runs", std::move(runs)}};
}

std::string comparison_text(const Comparison& comparison) {
  Table table({"", "A", "B", "B - A", "95 % interval", "difference"});
  std::optional<measure::PairedDifference> speed;
  bool any = false;
  for (const Figure& figure : kFigures) {
    const auto found = difference_of(comparison, figure);
    if (!found) continue;
    any = true;
    if (&figure == &kFigures[0]) speed = found;
    table.add({figure.name, value_text(found->mean_a, figure), value_text(found->mean_b, figure),
               change(found->mean, figure),
               fmt::format("{} to {}", change(found->low, figure), change(found->high, figure)), verdict(*found)});
  }
  const size_t pairs = whole_pairs(comparison).size();
  std::string text =
      wrapped(fmt::format("A is {}, B the same with {}; {} of runs, each with a seed of its own", comparison.job,
                          fmt::join(comparison.settings, " and "), counted(double(pairs), "pair")),
              kTextWidth);
  if (any) text += "\n" + table.text(kTextWidth);
  return text + "\n" + wrapped(speed_sentence(comparison, speed), kTextWidth);
}

}  // namespace remuda::cli
