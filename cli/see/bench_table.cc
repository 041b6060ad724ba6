#include "cli/see/bench_table.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/table.h"
#include "device/fields.h"
#include "topology/bandwidth.h"

namespace remuda::cli {
namespace {

using measure::Limit;

constexpr std::array kPrecisions{"float64", "float32", "bfloat16", "float16"};
constexpr const char* kMemoryCopy = "memory copy";

/// Three digits, or as many as there are before the point.
std::string digits(double value) { return fmt::format(fmt::runtime(value < 100 ? "{:#.3g}" : "{:.0f}"), value); }

std::string cell(const Reading<double>& reading, const char* unit) {
  return reading.has_value() ? fmt::format("{} {}", digits(reading.value()), unit) : "-";
}

std::string cell(const std::optional<measure::Limit>& limit) {
  return limit ? fmt::format("{} GB/s {}", digits(limit->gbps), limit->what) : "-";
}

std::string gemm_cell(const MeasuredDevice& device, const char* precision) {
  const auto found = std::ranges::find(device.gemm, precision, &MeasuredGemm::precision);
  if (found == device.gemm.end()) return "-";
  return found->tflops < 1 ? fmt::format("{} GFLOP/s", digits(1000 * found->tflops))
                           : fmt::format("{} TFLOP/s", digits(found->tflops));
}

std::string device_table(const Inventory& inventory, const BenchResults& results) {
  Table table(
      {"DEVICE", "HOST TO DEVICE", "DEVICE TO HOST", "LIMIT", "LATENCY", "FLOAT64", "FLOAT32", "BFLOAT16", "FLOAT16"});
  for (const MeasuredDevice& measured : inventory.measured_devices) {
    const Device* device = inventory.find(measured.id);
    if (!device) continue;
    std::vector<std::string> row{device->label(), cell(measured.host_to_device_gbps, "GB/s"),
                                 cell(measured.device_to_host_gbps, "GB/s"), cell(limit_of(*device, results)),
                                 cell(measured.latency_us, "us")};
    for (const char* precision : kPrecisions) row.push_back(gemm_cell(measured, precision));
    table.add(std::move(row));
  }
  return table.text();
}

std::string pair_table(const Inventory& inventory, const BenchResults& results) {
  Table table({"DEVICE", "DEVICE", "SLOWER DIRECTION", "LIMIT", "LATENCY"});
  for (const MeasuredLink& link : inventory.measured_links) {
    const Device *a = inventory.find(link.a), *b = inventory.find(link.b);
    if (!a || !b) continue;
    table.add({a->label(), b->label(), fmt::format("{} GB/s", digits(link.gbps)),
               cell(limit_of(inventory, *a, *b, results)), cell(link.latency_us, "us")});
  }
  return table.text();
}

Json limits_json(const Inventory& inventory, const BenchResults& results) {
  Json limits = Json::array();
  for (const MeasuredDevice& measured : inventory.measured_devices)
    if (const Device* device = inventory.find(measured.id))
      if (const auto limit = limit_of(*device, results))
        limits.push_back({{"a", measured.id}, {"gbps", limit->gbps}, {"what", limit->what}});
  for (const MeasuredLink& link : inventory.measured_links) {
    const Device *a = inventory.find(link.a), *b = inventory.find(link.b);
    const auto limit = a && b ? limit_of(inventory, *a, *b, results) : std::nullopt;
    if (limit) limits.push_back({{"a", link.a}, {"b", link.b}, {"gbps", limit->gbps}, {"what", limit->what}});
  }
  return limits;
}

}  // namespace

std::optional<measure::Limit> limit_of(const Device& device, const BenchResults& results) {
  if (device.kind != DeviceKind::cpu) return measure::bus_limit(device);
  const auto gbps = results.memory_copy_gbps(device.id);
  return gbps ? std::optional(measure::Limit{*gbps, kMemoryCopy}) : std::nullopt;
}

std::optional<measure::Limit> limit_of(const Inventory& inventory, const Device& a, const Device& b,
                                       const BenchResults& results) {
  if (a.kind == DeviceKind::cpu && b.kind == DeviceKind::cpu) {
    const auto mine = results.memory_copy_gbps(a.id), other = results.memory_copy_gbps(b.id);
    return mine && other ? std::optional(measure::Limit{std::min(*mine, *other), kMemoryCopy}) : std::nullopt;
  }
  if (const auto limit = measure::pair_limit(inventory, a, b)) return limit;
  const Link* link = inventory.link(a.id, b.id);
  const Fabric fabric = link ? link->fabric.value_or(Fabric::none) : Fabric::none;
  if (fabric == Fabric::none) return std::nullopt;
  const auto speed = topology::pair_speed(a, b, link, nullptr);
  return speed ? std::optional(measure::Limit{speed->gbps, to_string(fabric)}) : std::nullopt;
}

std::string bench_text(const Inventory& inventory, const BenchResults& results) {
  std::string text = inventory.measured_devices.empty() ? "" : device_table(inventory, results) + "\n";
  if (!inventory.measured_links.empty()) text += pair_table(inventory, results) + "\n";
  return text;
}

Json bench_json(const Inventory& inventory, const BenchResults& results, const std::string& file) {
  Json unmeasured = Json::array();
  for (const auto& [why, names] : results.unmeasured()) unmeasured.push_back({{"what", names}, {"why", why}});
  return {{"host", inventory.host},
          {"measured_devices", fields::write(inventory.measured_devices)},
          {"measured_links", fields::write(inventory.measured_links)},
          {"limits", limits_json(inventory, results)},
          {"unmeasured", std::move(unmeasured)},
          {"file", file}};
}

}  // namespace remuda::cli
