#include "place/rates.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <optional>

namespace remuda::place {
namespace {

using Devices = std::span<const Device* const>;

/// One figure per device, or nothing unless all have one above 0.
template <typename Figure>
std::vector<double> figures_of(Devices devices, Figure figure) {
  std::vector<double> figures;
  for (const Device* device : devices) {
    const double value = figure(*device);
    if (!std::isfinite(value) || value <= 0) return {};
    figures.push_back(value);
  }
  return figures;
}

double measured_tflops(const Inventory& inventory, const Device& device, std::string_view precision) {
  for (const MeasuredDevice& measured : inventory.measured_devices) {
    if (measured.id != device.id) continue;
    for (const MeasuredGemm& gemm : measured.gemm)
      if (gemm.precision == precision) return gemm.tflops;
  }
  return 0;
}

double nominal_rate(const Device& device) {
  return static_cast<double>(device.multiprocessors.value_or(0)) * device.sm_clock_max_mhz.value_or(0);
}

}  // namespace

Rates rates_of(const Inventory& inventory, Devices devices) {
  if (!inventory.measured_devices.empty())
    for (const char* precision : {"bfloat16", "float16", "float32", "float64"}) {
      auto measured =
          figures_of(devices, [&](const Device& device) { return measured_tflops(inventory, device, precision); });
      if (!measured.empty()) return {std::move(measured), fmt::format("measured {} matrix products", precision)};
    }
  if (auto nominal = figures_of(devices, nominal_rate); !nominal.empty())
    return {std::move(nominal), "multiprocessors times highest clock"};
  return {std::vector<double>(devices.size(), 1), "equal, as their speeds are not known"};
}

std::vector<double> RelativeSpeeds::of_each(const std::vector<std::string>& devices) const {
  std::vector<double> speeds;
  for (const std::string& device : devices) {
    const auto known = of.find(device);
    speeds.push_back(known == of.end() ? 1 : known->second);
  }
  return speeds;
}

RelativeSpeeds relative_speeds(const Inventory& inventory) {
  std::vector<const Device*> devices;
  for (const Device& device : inventory.devices)
    if (device.kind == DeviceKind::gpu || device.kind == DeviceKind::partition) devices.push_back(&device);
  Rates rates = rates_of(inventory, devices);
  RelativeSpeeds speeds{.of = {}, .basis = std::move(rates.basis)};
  const double fastest = rates.values.empty() ? 1 : *std::ranges::max_element(rates.values);
  for (size_t i = 0; i < devices.size(); ++i) speeds.of[devices[i]->id] = rates.values[i] / fastest;
  return speeds;
}

std::vector<double> shares_of(const Rates& rates) {
  const double sum = std::accumulate(rates.values.begin(), rates.values.end(), 0.0);
  std::vector<double> shares;
  for (const double rate : rates.values) shares.push_back(rate / sum);
  return shares;
}

}  // namespace remuda::place
