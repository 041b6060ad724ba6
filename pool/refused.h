// RefusedRequests: what was refused within one look at the queue, so that the same, and more than that, need not be
// asked for again. Internal to pool.
#pragma once

#include <unordered_map>
#include <vector>

#include "place/request.h"

namespace remuda::pool {

class RefusedRequests {
 public:
  /// `request`, which outlives this, cannot be met now, and will not be for as long as nothing comes free.
  void add(const place::Request& request);
  /// Whether this one cannot be met either: it is the same, or asks for as many devices of as much memory or more, and
  /// is the same otherwise.
  bool covers(const place::Request& request) const;

 private:
  std::unordered_map<size_t, std::vector<const place::Request*>> refused_;  ///< by what covers() wants to be the same
};

/// Whether a refusal of `small` is one of `large`, too.
bool asks_for_as_much(const place::Request& large, const place::Request& small);

}  // namespace remuda::pool
