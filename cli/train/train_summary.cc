#include "cli/train/train_summary.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>

#include "base/table.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/train/profile_text.h"
#include "cli/train/report_text.h"
#include "cli/train/run_bottleneck.h"
#include "cli/train/run_compression.h"
#include "cli/train/run_together.h"
#include "cli/train/train_progress.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

constexpr size_t kSummaryWidth = 80;

using Format = std::function<std::string(double)>;

std::string seconds(double value) { return fmt::format("{:.2f}", value); }
std::string percents(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }
std::string count(double value) { return fmt::format("{:.0f}", value); }
std::string loss(double value) { return fmt::format("{:.4f}", value); }
std::string slowed(double slowdown) { return slowdown == 1 ? "no" : fmt::format("{:.1f}x", slowdown); }

/// The number as `show` writes it, or "-" where there is none.
std::string cell(const Json& object, const char* key, const Format& show) {
  const double value = workers::number_field(object, key, NAN);
  return std::isnan(value) ? "-" : show(value);
}

/// Of a device that takes no samples by its role, the role.
std::string share_of(const Json& device) {
  return takes_samples(device) ? cell(device, "share", percents) : printable(workers::text_field(device, "role"));
}

std::string device_table(const Json& report) {
  Table table({"device", "model", "slowed", "alone/s", "share", "samples", "compute s", "wait s"});
  const std::vector<std::string> names = device_names(report);
  for (size_t rank = 0; rank < names.size(); ++rank) {
    const Json& device = report.at("devices")[rank];
    table.add({names[rank], printable(workers::text_field(device, "model", "-")), cell(device, "slowdown", slowed),
               cell(device, "alone_samples_per_s", rate_text), share_of(device), cell(device, "samples", count),
               cell(device, "compute_s", seconds), cell(device, "wait_s", seconds)});
  }
  return table.text(kSummaryWidth);
}

std::string line(const char* name, const std::string& value) { return fmt::format("{:<14}  {}\n", name, value); }

std::string losses(const Json& report) {
  constexpr size_t kShown = 8;  // the last ones, as many as fit in a line
  std::vector<std::string> texts;
  for (const double value : workers::numbers_field(report, "loss_per_epoch")) texts.push_back(loss(value));
  const size_t first = texts.size() > kShown ? texts.size() - kShown : 0;
  return fmt::format("{}{}", first > 0 ? "... " : "",
                     fmt::join(texts.begin() + static_cast<long>(first), texts.end(), " "));
}

/// Where the job asked for weights: what was written, or why nothing was.
std::string weights_line(const Json& report) {
  const std::string file = report.contains("job") ? workers::text_field(report["job"], "output.weights") : "";
  if (file.empty()) return "";
  if (!report.contains("weights"))
    return line("weights", report.contains("not_finite")                ? "not written, as the loss is not finite"
                           : workers::number_field(report, "steps") > 0 ? "not written"
                                                                        : "not written, as no step was made");
  const Json& weights = report["weights"];
  return line("weights", fmt::format("{} tensors, {}, as {} in {}", cell(weights, "tensors", count),
                                     cell(weights, "bytes", human_bytes),
                                     printable(workers::text_field(weights, "format", "-")), printable(file)));
}

/// Where checkpoints could not be written: how many, and what of the rest was. What that means for the run is said at
/// its end.
std::string checkpoints_line(const Json& report) {
  const Json kept = report.value("checkpoints", Json::object());
  const double failed = workers::number_field(kept, "failed"), written = workers::number_field(kept, "written");
  if (!(failed > 0)) return "";
  return line("checkpoints", fmt::format("{:.0f} written, {:.0f} could not be written", written, failed));
}

/// The text that the model has generated, with the prompt before it, as both may hold anything.
std::string sample_lines(const Json& report) {
  if (const std::string why = workers::text_field(report, "sample_missing"); !why.empty())
    return "\n" + wrapped(fmt::format("There is no sample: {}.", printable(why)), kSummaryWidth);
  if (!report.contains("sample")) return "";
  std::string text = "\nsample\n";
  const std::string prompt = report.contains("job") ? workers::text_field(report["job"], "output.prompt") : "";
  for (const std::string& sample_line : split(prompt + workers::text_field(report, "sample"), '\n'))
    text += "  " + printable(sample_line) + "\n";
  return text;
}

}  // namespace

Result<Json> complete_report(Json report, const Inventory& inventory, const Json& job) {
  if (!report.is_object() || !report.contains("devices") || !report["devices"].is_array())
    return failed("rank 0 ended without a report of the run");
  report["host"] = inventory.host;
  report["job"] = job;
  if (!report["versions"].is_object()) report["versions"] = Json::object();
  report["versions"]["remuda"] = version();
  for (auto& device : report["devices"])
    if (const auto known = inventory.resolve(workers::text_field(device, "id"))) device["model"] = (*known)->model;
  if (Json bottleneck = bottleneck_json(report); !bottleneck.is_null()) report["bottleneck"] = std::move(bottleneck);
  return report;
}

std::string summary_text(const Json& report) {
  std::string text = device_table(report) + "\n";
  const auto add = [&](const char* name, const char* key, const Format& show) {
    if (const std::string value = cell(report, key, show); value != "-") text += line(name, value);
  };
  if (report.contains("steps") && !report.contains("samples_per_s"))
    text += line("samples/s", "too few steps to measure");
  add("samples/s", "samples_per_s", rate_text);
  if (const auto difference = predicted_difference(report))
    text += line("predicted", fmt::format("{}; it was {:+.1f} %", cell(report["predicted"], "samples_per_s", rate_text),
                                          100 * *difference));
  add("ideal", "ideal_samples_per_s", rate_text);
  add("efficiency", "efficiency", percents);
  add("balance", "balance_efficiency", [](double part) { return percents(part) + " of all time was computing"; });
  add("share changes", "share_changes", count);
  if (const std::string hosts = compression_line(report); !hosts.empty()) text += line("compression", hosts);
  if (const std::string all = losses(report); !all.empty()) text += line("loss per epoch", all);
  if (report.contains("test_loss"))  // null where it is none
    text += line("test loss", loss(workers::number_field(report, "test_loss", NAN)));
  add("test accuracy", "test_accuracy", [](double value) { return fmt::format("{:.2f} %", 100 * value); });
  if (report.value("stopped", Json(false)) == Json(true))
    text += line("stopped", "after step " + cell(report, "steps", count));
  text += checkpoints_line(report) + weights_line(report);
  for (const std::string& why : {loss_text(report), join_text(report), roles_text(report), left_out_text(report),
                                 efficiency_text(report), memory_text(report), unregistered_text(report),
                                 batch_norm_text(report), compression_text(report), bottleneck_text(report)})
    if (!why.empty()) text += "\n" + wrapped(why, kSummaryWidth);
  if (const std::string profile = profile_text(report); !profile.empty()) text += "\n" + profile;
  return text + sample_lines(report);
}

}  // namespace remuda::cli
