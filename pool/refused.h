// RefusedRequests: the requests refused within one scheduling pass, so that place() need not be called for the same or
// a larger request again. Internal to pool.
#pragma once

#include <unordered_map>
#include <vector>

#include "place/request.h"

namespace remuda::pool {

class RefusedRequests {
 public:
  /// Records that `request`, which outlives this, cannot be met until a device comes free.
  void add(const place::Request& request);
  /// Whether this request cannot be met either: it is the same as a refused one, or asks for at least as many devices
  /// with at least as much memory, and is the same otherwise.
  bool covers(const place::Request& request) const;

 private:
  std::unordered_map<size_t, std::vector<const place::Request*>> refused_;  ///< by a hash of what covers() compares
};

/// Whether a refusal of `small` means that `large` is refused, too.
bool asks_for_as_much(const place::Request& large, const place::Request& small);

}  // namespace remuda::pool
