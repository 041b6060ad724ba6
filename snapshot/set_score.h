// SetScore: what some devices are worth as a set: the scheduler's own score and explanation of it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "device/inventory.h"

namespace remuda::snapshot {

struct SetQuery {
  static constexpr size_t kMost = 16;  ///< as many as are searched exactly

  std::string host;                  ///< empty: the first
  std::vector<std::string> devices;  ///< 1 to kMost, by label or id
};

/// What `remuda place --device ... --any-model --json` says of them as if nobody held anything: {"devices",
/// "explanation", ...}, or {"refused", "sentence", ...} where one of them cannot be used. A usage error for none, for
/// too many, and for one that is not there.
Result<Json> set_score(const Inventory& inventory, const SetQuery& query);

}  // namespace remuda::snapshot
