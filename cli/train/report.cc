#include "cli/train/report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <memory>

#include "base/file.h"
#include "base/table.h"
#include "cli/subcommands.h"
#include "cli/train/train_progress.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

using Show = std::function<std::string(const Json& report)>;

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
  return report.contains("balance") ? workers::text_field(report["balance"], "policy", "-") : "-";
}

std::string last_loss(const Json& report) {
  const auto losses = workers::numbers_field(report, "loss_per_epoch");
  return losses.empty() ? "-" : four_digits(losses.back());
}

const Json& devices(const Json& report) {
  static const Json none = Json::array();
  return report.contains("devices") && report["devices"].is_array() ? report["devices"] : none;
}

/// Two rows for the device in that position: its share, and how long it waited for the others.
void add_device(const std::vector<Json>& reports, size_t position,
                const std::function<void(std::string, Show, const char*)>& add) {
  const Json& device = devices(reports[0])[position];
  const std::string label =
      device_label({workers::text_field(device, "id", "?"), workers::number_field(device, "slowdown", 1)});
  const auto of_device = [position](const Json& report) {
    return position < devices(report).size() ? devices(report)[position] : Json::object();
  };
  add(
      "share of " + label, [=](const Json& report) { return number("share", one_digit_percent)(of_device(report)); },
      "of every batch");
  add(
      "waiting, " + label,
      [=](const Json& report) {
        const Json entry = of_device(report);
        const double wait = workers::number_field(entry, "wait_s"), compute = workers::number_field(entry, "compute_s");
        return wait + compute > 0 ? one_digit_percent(wait / (wait + compute)) : "-";
      },
      "of its time, idle until the others are ready");
}

Result<Json> read_report(const std::string& path) {
  REMUDA_ASSIGN(const std::string text, read_text(path));
  REMUDA_ASSIGN(Json report, parse_json(text, path));
  if (!report.is_object() || devices(report).empty())
    return usage_error(
        fmt::format("{} is not the report of a training run (remuda train --json FILE writes one)", path));
  return report;
}

Result<int> report(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  std::vector<Json> reports;
  for (const auto& file : files) {
    REMUDA_ASSIGN(Json read, read_report(file));
    names.push_back(std::filesystem::path(file).stem().string());
    reports.push_back(std::move(read));
  }
  fmt::print("{}", comparison_text(names, reports));
  return 0;
}

}  // namespace

std::string comparison_text(const std::vector<std::string>& names, const std::vector<Json>& reports) {
  std::vector<std::string> header{""};
  header.insert(header.end(), names.begin(), names.end());
  header.emplace_back("");
  Table table(header);
  const auto add = [&](std::string name, const Show& show, const char* meaning) {
    std::vector<std::string> row{std::move(name)};
    for (const auto& one : reports) row.push_back(show(one));
    if (std::all_of(row.begin() + 1, row.end(), [](const auto& cell) { return cell == "-"; })) return;
    row.emplace_back(meaning);
    table.add(std::move(row));
  };
  add("balance", policy, "how the batch is split");
  for (size_t i = 0; i < devices(reports[0]).size(); ++i) add_device(reports, i, add);
  add("samples/s", number("samples_per_s", rate_text), "all devices together");
  add("ideal samples/s", number("ideal_samples_per_s", rate_text), "what the devices do alone, added up");
  add("efficiency", number("efficiency", ratio), "samples/s over ideal; 1 is perfect");
  add("share changes", number("share_changes", whole), "after the first split");
  add("training seconds", number("seconds", one_digit), "with evaluation");
  add("last training loss", last_loss, "the split does not change what is learned");
  add("test accuracy", number("test_accuracy", four_digits), "");
  return table.text();
}

void add_report(Program& program) {
  auto files = std::make_shared<std::vector<std::string>>();
  CLI::App& command =
      program.add("report", "Show reports of training runs side by side", [files] { return report(*files); });
  command.add_option("FILE", *files, "Reports written by `remuda train --json FILE`")->required();
  command.footer("Example: remuda report balanced.json even.json");
}

}  // namespace remuda::cli
