// Which of the machine's devices a training run uses.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/train/train_lease.h"
#include "device/inventory.h"
#include "job/train_job.h"
#include "probe/live_machine.h"

namespace remuda::cli {

struct DeviceRequest {
  std::vector<job::DeviceSpec> file;  ///< the job file's devices
  std::vector<std::string> line;      ///< the command line's, in place of the file's when there are any
  int cpu_devices = 0;                ///< the command line's ProbeOptions::cpu_devices
  std::optional<CallersLease> lease;  ///< its devices, in place of the file's
  bool live = true;                   ///< the machine is this one
  std::vector<std::string>
      allocated;                     ///< the GPUs that a batch system has given this process; used where none is named
  std::vector<std::string> granted;  ///< what a lease would hold that is not there yet; in place of all of these
};

struct ChosenDevices {
  Inventory inventory;                   ///< the machine; has all chosen devices
  std::vector<job::DeviceSpec> devices;  ///< named by label: gpu:0
  std::string note;  ///< a sentence about a choice the user did not make, or roles that are lost; usually empty
};

using ProbeMachine = std::function<Result<Inventory>(const probe::ProbeOptions&)>;

/// The devices of the lease, or else those asked for, or else all CPU devices: a GPU that nobody named may be another
/// user's. They are named as for Inventory::resolve. What else the file's [[device]] tables say of a device, its
/// slowdown and that ranks share it, holds for its ranks in order: the first table for the first rank.
///
/// A device of a lease has as many ranks as the file names for it, and one where it names none. Within a lease the
/// command line may choose among its devices only. When a wanted cpu:N does not exist, and the number of CPU devices
/// was not given, the cores are split into as many as needed. A device that is named twice and not shared, cannot exist
/// or has no name in libtorch is a usage error that names it.
Result<ChosenDevices> choose_devices(const DeviceRequest& request, const ProbeMachine& probe);

/// The device that a job chosen so calls `use`; it must be there.
const Device& chosen_device(const Inventory& inventory, const std::string& use);

}  // namespace remuda::cli
