// remuda history: the jobs that have ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "pool/stage.h"

namespace remuda::cli {

struct HistoryFilter {
  std::string user;                  ///< empty: all
  double since_s = 0;                ///< that ended at this time or later, in seconds since 1970
  std::optional<pool::Stage> stage;  ///< one of ended jobs; nothing: all
  size_t at_most = 0;                ///< the newest
};

/// Those that pass, the last to end first. The jobs that stand for arrays are among them.
std::vector<pool::Job> filtered(std::vector<pool::Job> ended, const HistoryFilter& filter);

/// A line for each; see Table::text() for `width`.
std::string history_text(const std::vector<pool::Job>& jobs, const Inventory& inventory, size_t width);

}  // namespace remuda::cli
