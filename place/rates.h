// Rates: how fast devices compute, in proportion to one another.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "device/inventory.h"

namespace remuda::place {

struct Rates {
  std::vector<double> values;  ///< one per device, above 0, in a unit of their own
  std::string basis;           ///< their source
};

/// Measured matrix products where all devices have a rate of one precision (bfloat16 first, then float16, float32,
/// float64); else multiprocessors x highest clock where both are known of all; else equal.
Rates rates_of(const Inventory& inventory, std::span<const Device* const> devices);

/// Of each GPU and partition, as part of the fastest one's: 1 is the fastest. Devices of other kinds, whose work is not
/// compared with that of GPUs, are not in it.
struct RelativeSpeeds {
  std::map<std::string, double> of;  ///< by id
  std::string basis;

  /// 1 for those that are not in it.
  std::vector<double> of_each(const std::vector<std::string>& devices) const;
};
RelativeSpeeds relative_speeds(const Inventory& inventory);

/// The rates as parts of one.
std::vector<double> shares_of(const Rates& rates);

}  // namespace remuda::place
