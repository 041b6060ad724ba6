#include "cli/train/run_together.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "cli/train/report_text.h"
#include "cli/train/train_progress.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

constexpr double kGood = 0.9;    // an efficiency that needs no explanation
constexpr double kAlike = 0.95;  // of a speed: the same, measured another time

/// What a sample cost in waiting for it.
double wait_per_sample_s(const Json& devices) {
  double wait_s = 0, samples = 0;
  for (const Json& device : devices) {
    wait_s += std::max(0.0, workers::number_field(device, "data_wait_s"));
    samples += std::max(0.0, workers::number_field(device, "samples"));
  }
  return samples > 0 ? wait_s / samples : 0;
}

double alone_per_s(const Json& device, double wait_s) {
  const double alone = workers::number_field(device, "alone_samples_per_s");
  return alone > 0 ? 1 / (1 / alone + wait_s) : 0;
}

/// "a, b and c".
std::string listed(const std::vector<std::string>& texts) {
  if (texts.size() < 2) return texts.empty() ? "" : texts[0];
  return fmt::format("{} and {}", fmt::join(texts.begin(), texts.end() - 1, ", "), texts.back());
}

/// Whether several ranks do.
bool shares_devices(const Json& report, const std::vector<std::string>& names) {
  for (size_t rank = 0; rank < names.size(); ++rank)
    if (names[rank] != workers::text_field(report["devices"][rank], "id", "-")) return true;
  return false;
}

}  // namespace

std::optional<SlowerTogether> slower_together(const Json& report, double avoidable) {
  const Json devices = report.value("devices", Json::array());
  const double together = workers::number_field(report, "samples_per_s");
  if (devices.size() < 2 || !(together > 0) || report.contains("lost_ranks") || report.contains("joined_ranks"))
    return std::nullopt;
  if (!std::ranges::all_of(devices, takes_samples)) return std::nullopt;
  SlowerTogether slower{.together_per_s = together};
  const double wait_s = wait_per_sample_s(devices);
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    const double alone = alone_per_s(devices[rank], wait_s);
    if (alone > slower.alone_per_s) slower.fastest = rank, slower.alone_per_s = alone;
  }
  const double possible = avoidable < 1 ? together / (1 - avoidable) : together;
  if (!(possible < kAlike * slower.alone_per_s)) return std::nullopt;
  return slower;
}

std::string slower_together_text(const Json& report, const SlowerTogether& slower) {
  const Json& devices = report.at("devices");
  const std::vector<std::string> names = device_names(report);
  std::vector<std::string> others;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    const double alone = workers::number_field(devices[rank], "alone_samples_per_s");
    const std::string speed = alone > 0 ? fmt::format(", with {} alone,", rate_text(alone)) : "";
    if (rank != slower.fastest) others.push_back(names[rank] + speed);
  }
  const std::string& fastest = names[slower.fastest];
  const bool is_named = fastest == workers::text_field(devices[slower.fastest], "id");
  const bool is_one = others.size() == 1;
  const std::string all = names.size() == 2 ? "both" : fmt::format("all {}", names.size());
  return fmt::format(
      "Slower together than alone: {} alone makes {} samples/s, {} together {}. {} {}: without {}{} there are about "
      "{:.0f} % more samples/s.",
      fastest, rate_text(slower.alone_per_s), all, rate_text(slower.together_per_s), listed(others),
      is_one ? "costs more than it gives" : "cost more than they give", is_one ? "it" : "them",
      is_named ? fmt::format(", by --devices {},", fastest) : "",
      100 * (slower.alone_per_s / slower.together_per_s - 1));
}

std::string efficiency_text(const Json& report) {
  const double efficiency = workers::number_field(report, "efficiency", NAN);
  const double balance = workers::number_field(report, "balance_efficiency", NAN);
  if (!(efficiency < kGood) || std::isnan(balance) || report.value("devices", Json::array()).size() < 2) return "";
  if (slower_together(report)) return "";
  const std::vector<std::string> names = device_names(report);
  if (balance >= kGood && shares_devices(report, names))
    return fmt::format(
        "slower than the sum of the devices alone ({:.0f} % of it): ranks on one device share it, and each was "
        "measured while it had "
        "the device for itself",
        100 * efficiency);
  if (balance >= kGood)
    return fmt::format(
        "slower than the sum of the devices alone ({:.0f} % of it), though the devices hardly wait for each other: "
        "another load on "
        "this machine takes the rest, or the memory and cores that they share",
        100 * efficiency);
  for (size_t rank = 0; rank < names.size(); ++rank)
    if (workers::number_field(report["devices"][rank], "share", 1) == 0 && takes_samples(report["devices"][rank]))
      return fmt::format("{} takes no samples: even one would delay the other devices", names[rank]);
  return "";
}

}  // namespace remuda::cli
