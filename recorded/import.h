// Foreign recordings: what other programs printed of a machine, as an inventory.
//
// Read are: our own inventories; `nvidia-smi topo -m` and `topo -p2p`; `nvidia-smi -q -x`; `rocm-smi --showtopo`; NCCL
// and RCCL topology files (NCCL_TOPO_DUMP_FILE); and matrices made from KFD's sysfs or from RCCL's node models, as in
// testdata/machines. What a recording lacks, contradicts or hides is never guessed: the reading stays missing, and a
// sentence in the inventory's notes says why. So do notes say what stands beside a report, as warnings of its program,
// and readings that cannot be (device/sane.h) are missing. Text in which a program says only that it failed is quoted
// in the error.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "device/inventory.h"

namespace remuda::recorded {

/// Any text: finds out what it is. `where` names its source in errors, and its stem names the machine. Anything that
/// cannot be read is a usage error of one sentence that starts with `where`. Pure.
Result<Inventory> import_machine(std::string_view text, std::string_view where);

/// What is larger is not read.
inline constexpr size_t kLargestRecording = 64 << 20;

/// The same for a file. Never waits: what is not a regular file is refused.
Result<Inventory> read_machine_file(const std::string& path);

}  // namespace remuda::recorded
