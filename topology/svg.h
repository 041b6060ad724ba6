// The machine as a picture.
#pragma once

#include <string>

#include "base/result.h"
#include "topology/graph.h"

namespace remuda::topology {

/// An SVG document: a box per NUMA node, in it the PCIe tree over GPUs and network cards; direct links below, wider and
/// in another colour where they are faster; a legend. For light and dark pages (prefers-color-scheme). Text stays text;
/// titles describe each part to screen readers and on hover. Foreign names are escaped and clipped. The same graph
/// gives the same bytes. CPU devices are drawn where there is no GPU. A usage error for more than 64 devices and
/// network cards.
Result<std::string> topology_svg(const Graph& graph);

}  // namespace remuda::topology
