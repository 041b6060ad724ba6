// A plan as JSON, for `remuda topo --plan allreduce --json`.
#pragma once

#include "base/json.h"
#include "route/plan.h"

namespace remuda::route {

/// docs/plan.md describes it.
Json to_json(const Plan& plan, double bytes);

}  // namespace remuda::route
