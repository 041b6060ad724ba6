// remuda usage: for how long jobs had devices.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "device/inventory.h"
#include "monitor/money.h"
#include "place/rates.h"
#include "policy/policy.h"
#include "pool/job.h"

namespace remuda::cli {

enum class UsageBy { user, device };

struct Hours {
  int jobs = 0;
  double device_s = 0;    ///< seconds of devices; half a device for a second is half of one
  double weighted_s = 0;  ///< the same, each times the speed of its device; see DeviceHours::unknown
  monitor::Amount cost;   ///< for these hours, without the devices' energy
};

struct DeviceHours {
  std::map<std::string, Hours> of;   ///< by user, or by device's id
  std::vector<std::string> unknown;  ///< ids of devices whose speed is not known; they count as 1
  int without_devices = 0;           ///< jobs that ran, of which the devices were not recorded
};

/// What an hour of a device costs, by its id.
using HourPrices = std::map<std::string, double>;
HourPrices hour_prices(const Inventory& inventory, const policy::Policy& policy);
/// Ids of devices that have a price for their energy, and none for their hours.
std::vector<std::string> priced_by_energy(const Inventory& inventory, const policy::Policy& policy);

/// What these jobs had from `since_s` to `now_s`; what runs counts up to now. Pure.
DeviceHours device_hours(std::span<const pool::Job> jobs, UsageBy by, const place::RelativeSpeeds& speeds,
                         double since_s, double now_s, const HourPrices& prices = {});

}  // namespace remuda::cli
