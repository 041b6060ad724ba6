#include <algorithm>
#include <fmt/format.h>

#include "doctor/checks/checks.h"

namespace remuda::doctor {
namespace {

constexpr const char* kReadLog = "sudo dmesg | tail -50";
constexpr const char* kInstallDriver =
    "install the driver of your distribution (Debian: sudo apt install nvidia-driver)";

const GpuSlot* slot_of(const Device& device, const HostFacts& facts) {
  if (!facts.slots.has_value() || !device.pci.has_value()) return nullptr;
  const auto found = std::ranges::find(facts.slots.value(), device.pci.value(), &GpuSlot::pci);
  return found == facts.slots.value().end() ? nullptr : &*found;
}

Diagnosis judge_undriven(const Device& device, const std::string& bound) {
  if (!bound.empty())
    return fail(
        fmt::format("{} has the driver {}, but {}", called(device), bound, device.memory_bytes.missing().detail),
        "sudo reboot");
  if (is_amd(device.vendor)) return fail("nothing drives " + called(device), "sudo modprobe amdgpu");
  if (is_nvidia(device.vendor))
    return fail("nothing drives " + called(device),
                fmt::format("sudo modprobe nvidia; if it is missing, {}", kInstallDriver));
  return skip(called(device) + " is of a maker whose driver is not asked");
}

Diagnosis judge_driven(const Device& device, const HostFacts& facts) {
  const GpuSlot* slot = slot_of(device, facts);
  const std::string bound = slot ? slot->bound_driver.value_or("") : "";
  if (bound == "nouveau")
    return fail(called(device) + " is driven by nouveau, which cannot compute",
                fmt::format("{}, which puts nouveau aside, then: sudo reboot", kInstallDriver));
  if (bound.starts_with("vfio"))
    return warn(fmt::format("{} is set aside for virtual machines by {}", called(device), bound),
                fmt::format("to have it here: sudo driverctl unset-override {}", address(device)));
  if (device.memory_bytes.has_value()) return pass("");
  switch (device.memory_bytes.missing().reason) {
    case MissingReason::no_driver:
      return judge_undriven(device, bound);
    case MissingReason::unsupported:
      return skip_for(device.memory_bytes);
    default:
      return pass("");  // a driver that reports lost or denied is present
  }
}

Diagnosis match(const Driver& driver) {
  if (!driver.library_version.has_value()) return skip_for(driver.library_version);
  if (!driver.module_version.has_value()) return skip_for(driver.module_version);
  const std::string &library = driver.library_version.value(), &module = driver.module_version.value();
  // NVML puts the CUDA version before the driver's: 12.535.161.08 is the library of 535.161.08.
  if (library == module || library.ends_with("." + module))
    return pass(fmt::format("{}: library and kernel module are both {}", driver.vendor, module));
  return fail(fmt::format("{}: the library is {}, the loaded kernel module {}", driver.vendor, library, module),
              "sudo reboot, which loads the module that was installed with the library");
}

}  // namespace

Diagnoses check_probes(const Inventory& inventory, const HostFacts&) {
  Diagnoses all;
  for (const ProbeReport& probe : inventory.probes) {
    const std::string found = counted(static_cast<size_t>(std::max(probe.devices, 0)), "device");
    if (probe.reason.empty())
      all.push_back(pass(fmt::format("{}: {}", probe.name, found)));
    else if (probe.devices > 0)
      all.push_back(warn(fmt::format("{}: {}, but {}", probe.name, found, probe.reason), kReadLog));
    else if (probe.blind)
      all.push_back(fail(fmt::format("{}: {}", probe.name, probe.reason), kReadLog));
    else
      all.push_back(skip(fmt::format("{}: {}", probe.name, probe.reason)));
  }
  if (all.empty()) all.push_back(skip("a recorded machine does not report it"));
  return all;
}

Diagnoses check_driver(const Inventory& inventory, const HostFacts&) {
  Diagnoses all;
  for (const Driver& driver : inventory.drivers) {
    if (!driver.version.has_value()) {
      all.push_back(skip(fmt::format("{}: {}", driver.vendor, skip_for(driver.version).sentence)));
      continue;
    }
    const std::string serves =
        driver.runtime_version.has_value() ? ", serves runtimes up to " + driver.runtime_version.value() : "";
    all.push_back(pass(fmt::format("{} {}{}", driver.vendor, driver.version.value(), serves)));
  }
  if (all.empty()) all.push_back(gpus(inventory).empty() ? no_gpu(inventory) : skip("no driver reported its version"));
  return all;
}

Diagnoses check_driven(const Inventory& inventory, const HostFacts& facts) {
  return over_gpus(inventory, "each has its driver", [&](const Device& device) { return judge_driven(device, facts); });
}

Diagnoses check_driver_match(const Inventory& inventory, const HostFacts&) {
  Diagnoses all;
  for (const Driver& driver : inventory.drivers) all.push_back(match(driver));
  if (all.empty()) all.push_back(gpus(inventory).empty() ? no_gpu(inventory) : skip("no driver reported its version"));
  return all;
}

Diagnoses check_device_files(const Inventory& inventory, const HostFacts& facts) {
  if (gpus(inventory).empty()) return {no_gpu(inventory)};
  if (!facts.device_files.has_value()) return {skip_for(facts.device_files)};
  const auto& files = facts.device_files.value();
  if (files.empty())
    return {fail("there is a GPU, but no device file of one in /dev",
                 facts.container.value_or(false) ? "start the container with its GPUs: docker run --gpus all, or "
                                                   "--device /dev/kfd --device /dev/dri"
                                                 : "sudo nvidia-modprobe -u -c=0, or sudo modprobe amdgpu")};
  Diagnoses all;
  for (const DeviceFile& file : files)
    if (!file.usable)
      all.push_back(fail(fmt::format("this user may not read and write {}", file.path),
                         fmt::format("sudo usermod -aG {} $USER, then log in again", file.group)));
  const auto there = [&](const char* path) { return std::ranges::count(files, path, &DeviceFile::path) > 0; };
  if (there("/dev/nvidiactl") && !there("/dev/nvidia-uvm"))
    all.push_back(
        fail("/dev/nvidia-uvm is missing, and CUDA does not start without it", "sudo nvidia-modprobe -u -c=0"));
  if (all.empty()) all.push_back(pass(fmt::format("{}, all usable", counted(files.size(), "device file"))));
  return all;
}

}  // namespace remuda::doctor
