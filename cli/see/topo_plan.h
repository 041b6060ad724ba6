// `remuda topo --plan`: how devices best do a collective operation.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"

namespace remuda::cli {

struct PlanFlags {
  std::string collective;            ///< empty: no plan is asked for
  std::vector<std::string> devices;  ///< by any of their names; those of the matrix when empty
  std::string bytes = "4MiB";        ///< a bucket of gradients, unless a job says otherwise (train.bucket_mib)
};

/// Declares --plan, --devices and --bytes, and returns them.
std::vector<CLI::Option*> add_plan_options(CLI::App& command, PlanFlags& flags);

/// The plan as text or JSON. A usage error for a name that is no device, one that is named twice, a size that is none,
/// and devices that no links of known speed join.
Result<std::string> plan_output(const Inventory& inventory, const PlanFlags& flags, bool json);

}  // namespace remuda::cli
