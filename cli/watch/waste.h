// remuda usage --waste: who held devices for nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "device/inventory.h"
#include "monitor/money.h"
#include "monitor/use.h"
#include "policy/policy.h"

namespace remuda::cli {

enum class WasteBy { user, job, pod };

/// What users, or their jobs, or pods, made of the devices they held.
struct Waste {
  std::string user;
  std::string pod;  ///< "namespace/name"; it has no user
  int64_t job = 0;  ///< 0: all of the user's
  int jobs = 0;
  monitor::LeaseUse sum;  ///< its device is empty
  monitor::Money money;

  /// Known time in which nothing ran. Time of which nothing is known is not in it.
  double idle_s() const { return sum.busy_known_s - sum.busy_s; }
};

/// By user, or by job, of all that no pod had; or by pod. Who held most for nothing comes first. Pure.
std::vector<Waste> waste_of(std::span<const monitor::LeaseUse> uses, WasteBy by, const policy::Policy& policy = {});

/// What things cost, where `currency` is not empty.
std::string waste_text(const std::vector<Waste>& rows, WasteBy by, const std::string& currency, size_t width);
Json waste_json(const std::vector<Waste>& rows, const std::string& currency);

}  // namespace remuda::cli
