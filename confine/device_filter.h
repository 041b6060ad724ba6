// The device filter of a cgroup: its processes cannot open, make or keep the listed character devices; all others are
// left as they are. It holds for every process below the cgroup, of any user; a process with root's rights over
// cgroups can take it away again.
#pragma once

#include <linux/bpf.h>
#include <vector>

#include "base/result.h"
#include "confine/device_nodes.h"

namespace remuda::confine {

/// The program that the kernel asks at each opening of a device in a cgroup of version 2 (BPF_PROG_TYPE_CGROUP_DEVICE:
/// it sees struct bpf_cgroup_dev_ctx, and answers 1 for yes and 0 for no). Pure.
std::vector<bpf_insn> device_filter(const std::vector<DeviceNode>& denied);

/// Has the kernel enforce it for the cgroup whose folder is open as `cgroup`, of that version. The error is a clause
/// that says what stands in the way, with the verifier's last words where it refused the program.
Result<void> deny_devices(int cgroup, int version, const std::vector<DeviceNode>& denied);

}  // namespace remuda::confine
