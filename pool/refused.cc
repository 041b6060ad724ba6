#include "pool/refused.h"

#include <algorithm>
#include <functional>

namespace remuda::pool {
namespace {

size_t key_of(const place::Request& request) {
  size_t key = std::hash<std::string>{}(request.model);
  const auto mix = [&](size_t more) { key = key * 1000003 + more; };
  mix(std::hash<double>{}(request.share));
  mix(static_cast<size_t>(request.link));
  mix(request.devices.size());
  mix((request.any_model ? 1U : 0U) + (request.cpu ? 2U : 0U));
  return key;
}

}  // namespace

/// A ring of four need not contain a ring of three; and where as many devices are named as are wanted, they need not be
/// alike. So the number of devices is compared only where neither applies.
bool asks_for_as_much(const place::Request& large, const place::Request& small) {
  if (large.count == small.count && large.memory_bytes == small.memory_bytes) return large == small;
  const bool number_counts = small.link == place::LinkNeed::any;
  if (!small.devices.empty() || large.memory_bytes < small.memory_bytes) return false;
  if (number_counts ? large.count < small.count : large.count != small.count) return false;
  place::Request as_large = small;
  as_large.count = large.count;
  as_large.memory_bytes = large.memory_bytes;
  return large == as_large;
}

void RefusedRequests::add(const place::Request& request) { refused_[key_of(request)].push_back(&request); }

bool RefusedRequests::covers(const place::Request& request) const {
  const auto found = refused_.find(key_of(request));
  if (found == refused_.end()) return false;
  return std::ranges::any_of(found->second,
                             [&](const place::Request* small) { return asks_for_as_much(request, *small); });
}

}  // namespace remuda::pool
