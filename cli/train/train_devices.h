// Which of the machine's devices a training run uses.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "job/train_job.h"
#include "probe/live_machine.h"

namespace remuda::cli {

struct DeviceRequest {
  std::vector<job::DeviceSpec> file;  ///< the job file's devices
  std::vector<std::string> line;      ///< the command line's, in place of the file's when there are any
  int cpu_devices = 0;                ///< the command line's ProbeOptions::cpu_devices
};

struct ChosenDevices {
  Inventory inventory;  ///< the machine with only its CPU devices; has all chosen devices
  std::vector<job::DeviceSpec> devices;
  std::string note;  ///< a sentence about a choice the user did not make; usually empty
};

using ProbeMachine = std::function<Result<Inventory>(const probe::ProbeOptions&)>;

/// The devices asked for, or all of the machine's CPU devices when none is. Devices that the command line names have
/// the slowdown the file gives the same id, if any. When a wanted cpu:N does not exist, and the number of CPU devices
/// was not given, the cores are split into as many as needed. A device that is named twice, or cannot exist, is a usage
/// error that names it and the existing ones.
Result<ChosenDevices> choose_devices(const DeviceRequest& request, const ProbeMachine& probe);

}  // namespace remuda::cli
