// The card of a GPU or CPU device in the picture.
#pragma once

#include <string>

#include "topology/graph.h"
#include "topology/svg_parts.h"

namespace remuda::topology::svg {

/// Name, model, memory and lanes of node.device, in the box.
std::string paint_card(const GraphNode& node, const Box& box);

/// What the card of a device needs at this width.
double card_height(const Device& device, double width);

/// 1 core, 2 cores.
std::string plural(size_t count, const char* one);

}  // namespace remuda::topology::svg
