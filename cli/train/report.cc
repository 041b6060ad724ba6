#include "cli/train/report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <memory>
#include <set>

#include "base/file.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/subcommands.h"
#include "cli/train/report_text.h"
#include "cli/train/run_bottleneck.h"
#include "cli/train/run_plot.h"
#include "cli/train/run_together.h"
#include "cli/train/train_progress.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

constexpr size_t kReportWidth = 80;

using Show = std::function<std::string(const Json& report)>;

/// One figure, for every run.
struct Row {
  std::string name;
  std::vector<std::string> cells;  ///< one per run
  const char* meaning;
};

Show number(const char* key, std::string (*format)(double)) {
  return [key, format](const Json& report) {
    const double value = workers::number_field(report, key, NAN);
    return std::isnan(value) ? "-" : format(value);
  };
}

std::string ratio(double value) { return fmt::format("{:.3f}", value); }
std::string four_digits(double value) { return fmt::format("{:.4f}", value); }
std::string one_digit(double value) { return fmt::format("{:.1f}", value); }
std::string whole(double value) { return fmt::format("{:.0f}", value); }
std::string one_digit_percent(double value) { return fmt::format("{:.1f} %", 100 * value); }

std::string policy(const Json& report) {
  return report.contains("balance") ? printable(workers::text_field(report["balance"], "policy", "-")) : "-";
}

/// Where there were any.
std::string repeated_steps(const Json& report) {
  const double steps = workers::number_field(report, "oom_steps");
  return steps > 0 ? whole(steps) : "-";
}

/// What was predicted of the run; empty where nothing was.
Json predicted(const Json& report) { return report.value("predicted", Json::object()); }

std::string predicted_rate(const Json& report) { return number("samples_per_s", rate_text)(predicted(report)); }

std::string off_by(const Json& report) {
  const auto difference = predicted_difference(report);
  return difference ? fmt::format("{:+.1f} %", 100 * *difference) : "-";
}

std::string last_loss(const Json& report) {
  const auto losses = workers::numbers_field(report, "loss_per_epoch");
  return losses.empty() ? "-" : four_digits(losses.back());
}

const Json& devices(const Json& report) {
  static const Json none = Json::array();
  return report.contains("devices") && report["devices"].is_array() ? report["devices"] : none;
}

/// The names of all runs' devices, each once, in the order in which the runs name them.
std::vector<std::string> all_device_names(const std::vector<Json>& reports) {
  std::vector<std::string> all;
  for (const Json& report : reports)
    for (const std::string& name : device_names(report))
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  return all;
}

/// The run's entry for the device with that name; empty where it did not take part.
Json device_of(const Json& report, const std::string& name) {
  const std::vector<std::string> names = device_names(report);
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? Json::object() : devices(report)[found - names.begin()];
}

/// The device with its slowdown, where that is the same in all runs that it took part in.
std::string label_of(const std::vector<Json>& reports, const std::string& name) {
  std::set<double> slowdowns;
  for (const Json& report : reports)
    if (const Json device = device_of(report, name); !device.empty())
      slowdowns.insert(workers::number_field(device, "slowdown", 1));
  return slowdowns.size() == 1 ? device_label(name, *slowdowns.begin()) : name;
}

class Rows {
 public:
  explicit Rows(const std::vector<Json>& reports) : reports_(reports) {}
  /// Adds a row, unless no run has this figure.
  void add(std::string name, const Show& show, const char* meaning) {
    Row row{std::move(name), {}, meaning};
    for (const auto& one : reports_) row.cells.push_back(show(one));
    if (std::any_of(row.cells.begin(), row.cells.end(), [](const auto& cell) { return cell != "-"; }))
      rows_.push_back(std::move(row));
  }
  std::vector<Row> take() { return std::move(rows_); }

 private:
  const std::vector<Json>& reports_;
  std::vector<Row> rows_;
};

/// The device's share, how long it waited for the others, and its slowdown where the runs differ in it.
void add_device(const std::vector<Json>& reports, const std::string& name, Rows& rows) {
  const std::string label = label_of(reports, name);
  const auto of_device = [name](const Show& show) {
    return [name, show](const Json& report) { return show(device_of(report, name)); };
  };
  if (std::any_of(reports.begin(), reports.end(), [&](const Json& report) {
        return label == name && workers::number_field(device_of(report, name), "slowdown", 1) != 1;
      }))
    rows.add("slowdown of " + name, of_device(number("slowdown", one_digit)), "times slower");
  const auto memory = [&](const char* key) {
    return of_device([key](const Json& device) {
      return number(key, human_bytes)(device.contains("memory") ? device["memory"] : Json::object());
    });
  };
  rows.add("memory, " + label, memory("peak_bytes"), "in tensors, at most");
  rows.add("predicted, " + label, memory("predicted_peak_bytes"), "before the first step");
  rows.add("share of " + label, of_device(number("share", one_digit_percent)), "of every batch");
  rows.add("waiting, " + label, of_device([](const Json& device) {
             const double wait = workers::number_field(device, "wait_s"),
                          compute = workers::number_field(device, "compute_s");
             return wait + compute > 0 ? one_digit_percent(wait / (wait + compute)) : "-";
           }),
           "of its time");
}

std::vector<Row> rows_of(const std::vector<Json>& reports) {
  Rows rows(reports);
  rows.add("balance", policy, "how the batch is split");
  for (const std::string& name : all_device_names(reports)) add_device(reports, name, rows);
  rows.add("samples/s", number("samples_per_s", rate_text), "all devices together");
  rows.add("predicted/s", predicted_rate, "before the run, by the speeds of earlier ones");
  rows.add("difference", off_by, "samples/s over predicted, less one");
  rows.add("ideal samples/s", number("ideal_samples_per_s", rate_text), "alone, added up");
  rows.add("efficiency", number("efficiency", ratio), "samples/s over ideal");
  rows.add("balance efficiency", number("balance_efficiency", ratio), "computing, of all time");
  rows.add("share changes", number("share_changes", whole), "after the first split");
  rows.add("steps", number("steps", whole), "");
  rows.add("repeated steps", repeated_steps, "for want of memory");
  rows.add("training seconds", number("seconds", one_digit), "with evaluation");
  rows.add("last training loss", last_loss, "");
  rows.add("test accuracy", number("test_accuracy", four_digits), "");
  return rows.take();
}

/// The table of runs first..first + count.
std::string table_of(const std::vector<std::string>& names, const std::vector<Row>& rows, size_t first, size_t count,
                     bool meanings) {
  std::vector<std::string> header{""};
  header.insert(header.end(), names.begin() + first, names.begin() + first + count);
  if (meanings) header.emplace_back("");
  Table table(std::move(header));
  for (const Row& row : rows) {
    std::vector<std::string> cells{row.name};
    cells.insert(cells.end(), row.cells.begin() + first, row.cells.begin() + first + count);
    if (meanings) cells.emplace_back(row.meaning);
    table.add(std::move(cells));
  }
  return table.text();
}

bool fits(const std::string& text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end - begin > kReportWidth) return false;
    begin = end + 1;
  }
  return true;
}

/// Within 80 columns: with what each row means, or else without, or else in several tables below each other.
std::string tables_of(const std::vector<std::string>& names, const std::vector<Row>& rows) {
  if (const std::string whole = table_of(names, rows, 0, names.size(), true); fits(whole)) return whole;
  for (size_t most = names.size();; --most) {
    std::string text;
    for (size_t first = 0; first < names.size(); first += most)
      text += (first > 0 ? "\n" : "") + table_of(names, rows, first, std::min(most, names.size() - first), false);
    if (most == 1 || fits(text)) return text;
  }
}

Result<Json> read_report(const std::string& path) {
  REMUDA_ASSIGN(const std::string text, read_text(path));
  REMUDA_ASSIGN(Json report, parse_json(text, path));
  if (!report.is_object() || devices(report).empty() || !report.contains("steps"))
    return usage_error(
        fmt::format("{} is not the report of a training run (remuda train --json FILE writes one)", path));
  return report;
}

Result<void> plot(const Json& report, const std::string& name, const std::string& path) {
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(path));
  REMUDA_ASSIGN(const std::string svg, run_plot_svg(report, name));
  return file.commit(svg);
}

Result<int> report(const std::vector<std::string>& files, const std::string& plot_file) {
  if (!plot_file.empty() && files.size() > 1)
    return usage_error(fmt::format("--plot draws one run, but there are {} reports", files.size()));
  std::vector<Json> reports;
  for (const auto& file : files) {
    REMUDA_ASSIGN(Json read, read_report(file));
    reports.push_back(std::move(read));
  }
  std::vector<std::string> names = short_names(files);
  for (std::string& name : names) name = printable(name);
  if (!plot_file.empty()) REMUDA_TRY(plot(reports[0], names[0], plot_file));
  fmt::print("{}", comparison_text(names, reports));
  return 0;
}

}  // namespace

std::vector<std::string> short_names(const std::vector<std::string>& paths) {
  // As many of each path's last parts as are needed so that all names differ.
  std::vector<std::vector<std::string>> parts;
  size_t deepest = 1;
  for (const std::string& path : paths) {
    auto& mine = parts.emplace_back();
    for (const auto& part : std::filesystem::path(path).lexically_normal()) mine.push_back(part.string());
    if (!mine.empty()) mine.back() = std::filesystem::path(mine.back()).stem().string();
    deepest = std::max(deepest, mine.size());
  }
  std::vector<std::string> names;
  for (size_t depth = 1; depth <= deepest; ++depth) {
    names.clear();
    for (const auto& mine : parts)
      names.push_back(
          fmt::format("{}", fmt::join(mine.end() - static_cast<long>(std::min(depth, mine.size())), mine.end(), "/")));
    if (std::set(names.begin(), names.end()).size() == names.size()) return names;
  }
  return paths;  // one file twice, or two that differ in their extension only
}

std::string comparison_text(const std::vector<std::string>& names, const std::vector<Json>& reports) {
  std::string text = tables_of(names, rows_of(reports));
  std::string notes;
  for (size_t run = 0; run < reports.size(); ++run)
    for (const std::string& why : {loss_text(reports[run]), join_text(reports[run]), roles_text(reports[run]),
                                   efficiency_text(reports[run]), bottleneck_text(reports[run])})
      if (!why.empty()) notes += wrapped((reports.size() > 1 ? names[run] + ": " : "") + why, kReportWidth);
  for (const std::string& difference : differences(names, reports)) notes += wrapped(difference, kReportWidth);
  return notes.empty() ? text : text + "\n" + notes;
}

void add_report(Program& program) {
  auto files = std::make_shared<std::vector<std::string>>();
  auto plot_file = std::make_shared<std::string>();
  CLI::App& command = program.add("report", "Show reports of training runs side by side",
                                  [files, plot_file] { return report(*files, *plot_file); });
  command.add_option("FILE", *files, "Reports written by `remuda train --json FILE`")->required();
  command.add_option("--plot", *plot_file, "Draw loss, shares and step times of one run, as SVG, to this file");
  command.footer(
      "Examples:\n"
      "  remuda report balanced.json even.json\n"
      "  remuda report run.json --plot run.svg\n");
}

}  // namespace remuda::cli
