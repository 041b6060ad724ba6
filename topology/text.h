// The matrix for the terminal.
#pragma once

#include <span>
#include <string>

#include "topology/matrix.h"

namespace remuda::topology {

/// Three blocks: what joins each pair (a row per device with the CPUs and the NUMA node nearest to it and its model,
/// then a row per network card), how fast each pair is (a * marks what was measured), and what the words mean, with the
/// inventory's notes. Without control characters; 120 columns hold 8 devices.
std::string topology_text(const Inventory& inventory, const Matrix& matrix);

/// "ring bottleneck of WHO: 16.0 GB/s at gpu:2-gpu:3 (assumed)" for all devices of the matrix, with a newline.
std::string ring_text(const Matrix& matrix, const std::string& who);
/// "ring order: gpu:0 gpu:2 gpu:1", with a newline; empty for fewer than three devices or where there is no ring.
std::string ring_order_text(const Matrix& matrix);
/// The same of the tree; empty for fewer than two devices.
std::string tree_text(const Matrix& matrix, const std::string& who);

}  // namespace remuda::topology
