// The output of `remuda bench links`. Pure.
#pragma once

#include <optional>
#include <string>

#include "cli/see/bench_results.h"
#include "device/inventory.h"
#include "measure/limit.h"

namespace remuda::cli {

/// The limit of copies between host and device: the bus of a GPU, the memory of a CPU device; for a pair, the slower of
/// both, or the links between them. Nothing where that is not known.
std::optional<measure::Limit> limit_of(const Device& device, const BenchResults& results);
std::optional<measure::Limit> limit_of(const Inventory& inventory, const Device& a, const Device& b,
                                       const BenchResults& results);

/// A table of the inventory's measured devices and one of its measured pairs.
std::string bench_text(const Inventory& inventory, const BenchResults& results);

/// {host, measured_devices, measured_links, limits: [{a, b, gbps, what}], unmeasured: [{what, why}], file}; the first
/// three as in the inventory. A limit without b is one between host and device.
Json bench_json(const Inventory& inventory, const BenchResults& results, const std::string& file);

}  // namespace remuda::cli
