// MPS: NVIDIA's daemon through which several processes of one user compute on a GPU at once. It limits the memory of
// each. All code that is specific to MPS is here.
//
// Each device and user has a daemon of its own, started by the first job that has a part of the device and stopped
// after the last. It belongs to no job: it carries REMUDA_DAEMON (process/tree.h), so that no keeper waits for it
// or kills it. Every process that calls these functions may be killed at any point: the next one takes over what is
// left, or the next command that cleans up the pool stops it.
//
// One thread. Nothing waits longer than a few times REMUDA_PROBE_TIMEOUT.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "device/device.h"
#include "process/child.h"

namespace remuda::share {

/// Why MPS cannot share the device, as half a sentence; empty where it can, as far as its readings say. Pure.
std::string mps_obstacle(const Device& device);

/// The path of the control program, from PATH.
std::optional<std::string> find_mps_control();
/// The message where there is none.
std::string no_mps_control();

/// Starts this user's daemon for the device unless it runs, waits until it answers, and gives the variables by which a
/// process reaches it. `has_clients`: other jobs use it already, so a daemon that does not answer is left alone.
Result<process::Environment> start_mps(const std::string& pool, const Device& device, const std::string& program,
                                       bool has_clients);

/// For an agent, which keeps the daemons of all users, each in a folder that it has made with the folders "pipe" and
/// "log": the program to start as the daemon's user, which ends once the daemon runs.
process::ProcessSpec mps_starter(const std::string& program, const std::string& folder, const std::string& uuid);
/// Waits until the daemon of that folder, which an agent starts, answers, and gives the variables by which a process
/// reaches it.
Result<process::Environment> await_mps(const std::string& program, const std::string& folder);

/// The limits of a process with a part of the device: its multiprocessors, and its memory in bytes, whole MiB.
process::Environment mps_limits(double share, int64_t memory_bytes);

/// Stops this user's daemons for the pool's devices, except those of `used`, which is called with the daemons' lock
/// held; when it fails, none is stopped. Waits for the lock for at most `patience_s`.
Result<void> stop_mps_except(const std::string& pool, const std::function<Result<std::set<std::string>>()>& used,
                             double lock_patience_s);

}  // namespace remuda::share
