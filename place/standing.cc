#include "place/standing.h"

#include <tuple>

namespace remuda::place {
namespace {

/// Less is better.
auto costs(const Standing& s) {
  return std::make_tuple(s.cpus, -s.ring_gbps, s.models, s.speeds, s.numa_nodes, s.pcie_roots, s.opened, s.spare);
}

}  // namespace

bool is_better_but_for_left(const Standing& a, const Standing& b) { return costs(a) < costs(b); }

bool is_better(const Standing& a, const Standing& b) {
  if (costs(a) != costs(b)) return costs(a) < costs(b);
  return a.left > b.left;
}

}  // namespace remuda::place
