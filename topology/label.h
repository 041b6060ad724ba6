// The word of the familiar matrix for what joins a pair.
#pragma once

#include <string>

#include "device/inventory.h"

namespace remuda::topology {

/// link.label where the source has a word of its own; else NVn for n NVLink links (NVLINK: number not known), XGn for n
/// xGMI links (XGMI: not known), else the word of the path, PIX to SYS; "?" where none was read.
std::string link_label(const Link& link);

/// What joins two ends, `link` being what is recorded of them, or null. Two CPU devices of which nothing is recorded
/// are NODE within one NUMA node and SYS across two. "X" for a device and itself.
std::string pair_label(const Device& a, const Device& b, const Link* link);

}  // namespace remuda::topology
