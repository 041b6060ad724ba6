// The formats, one file each; import.cc finds out which one a text is in. Pure.
#pragma once

#include <vector>

#include "device/inventory.h"
#include "recorded/matrix.h"
#include "recorded/text.h"
#include "recorded/xml.h"

namespace remuda::recorded {

/// `nvidia-smi topo -m`, perhaps followed by `nvidia-smi topo -p2p`, or the latter alone.
Result<Inventory> import_smi_matrix(const Text& text, std::vector<Matrix> matrices);
/// A matrix made from KFD's sysfs: cells are TYPE/WEIGHT, the column CPUNODE the CPU's node.
Result<Inventory> import_kfd_matrix(const Text& text, const Matrix& matrix);
/// A matrix made from an RCCL node model: XGn or the PCIe class, columns NUMA and BUSID.
Result<Inventory> import_model_matrix(const Text& text, const Matrix& matrix);
/// `rocm-smi --showtopo`: any of its blocks.
Result<Inventory> import_rocm_topo(const Text& text, const std::vector<Matrix>& matrices);
/// `nvidia-smi -q -x`.
Result<Inventory> import_smi_xml(const Text& text, const Element& root);
/// A topology file of NCCL or RCCL.
Result<Inventory> import_rccl_xml(const Text& text, const Element& root);

/// Whether a text holds a block of `rocm-smi --showtopo`.
bool is_rocm_topo(const Text& text, const std::vector<Matrix>& matrices);

}  // namespace remuda::recorded
