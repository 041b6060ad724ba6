// Short reasons why jobs wait, for a list of them. `remuda why` has the whole sentence.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "place/place.h"
#include "pool/state.h"
#include "pool/usage.h"

namespace remuda::cli {

/// For one state of a pool, which must outlive it.
class WaitingReasons {
 public:
  /// `foreign` are devices in use without a lease.
  WaitingReasons(const pool::PoolState& state, const Inventory& inventory, const std::vector<place::Held>& foreign,
                 const pool::Policy& policy, double now_s);

  /// "2 wanted, 1 free", "paused", "after job 4", "2 wanted, 1 free; job 7 makes room". `before` is the waiting job
  /// whose turn is next before this one's, or null: "1 wanted, 0 free; behind job 4".
  std::string text(const pool::Job& job, const pool::Job* before);

 private:
  struct Free {
    int count = 0;         ///< the most devices that such a request could have now, at most as many as it asks for
    int count_unlike = 0;  ///< the same, where they may be of several models
    bool is_known = true;
  };
  const Free& free_for(const place::Request& request);
  bool fits(place::Request request, int count) const;
  std::string awaited(const pool::Job& job) const;

  const pool::PoolState& state_;
  const place::Layout layout_;
  std::vector<place::Held> held_;
  const pool::Policy& policy_;
  const double now_s_;
  std::map<std::string, Free> answers_;  ///< by request: many jobs ask for the same
};

}  // namespace remuda::cli
