// What leases cost, by the tariff of the policy: for the hours of devices that were held, and for their energy. Pure.
//
// What is not known is not 0: a device that no tariff is for, energy that was not counted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "monitor/use.h"
#include "policy/policy.h"

namespace remuda::monitor {

struct Amount {
  double value = 0;         ///< of what is known
  bool is_known = false;    ///< of some of it, at least
  bool is_complete = true;  ///< nothing of it is unknown

  void add(const Amount& other);
  bool operator==(const Amount&) const = default;
};

struct Money {
  Amount cost;
  Amount wasted;  ///< the part of it for hours in which nothing ran

  void add(const Money& other);
  bool operator==(const Money&) const = default;
};

/// The first tariff for a device of this model; null where there is none.
const policy::Tariff* tariff_of(const std::vector<policy::Tariff>& tariffs, const std::string& model);

Money money_of(const LeaseUse& use, const std::vector<policy::Tariff>& tariffs);

/// "12.40", ">= 12.40" where some of it is not known, "-" where nothing is.
std::string money_text(const Amount& amount);

}  // namespace remuda::monitor
