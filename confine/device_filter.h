// The device filter of a cgroup: its processes cannot open or make the listed character devices; all other devices are
// not affected. It holds for every process below the cgroup, of any user; a process with root's rights over cgroups can
// take it away again.
#pragma once

#include <linux/bpf.h>
#include <vector>

#include "base/result.h"
#include "confine/device_nodes.h"

namespace remuda::confine {

/// The program that the kernel runs whenever a process in a cgroup of version 2 opens or makes a device file
/// (BPF_PROG_TYPE_CGROUP_DEVICE: it reads struct bpf_cgroup_dev_ctx, and returns 1 to allow and 0 to deny). Pure.
std::vector<bpf_insn> device_filter(const std::vector<DeviceNode>& denied);

/// Has the kernel enforce it for the cgroup whose folder is open as `cgroup`, of that version. The error is a clause
/// that names the cause, with the end of the verifier's log where it refused the program.
Result<void> deny_devices(int cgroup, int version, const std::vector<DeviceNode>& denied);

}  // namespace remuda::confine
