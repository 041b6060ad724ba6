// From an index, a UUID, a serial number or a PCI address to a handle, and what identifies the device behind it.
#include <algorithm>
#include <fmt/format.h>

#include "device/pci_address.h"
#include "tests/nvml/answer.h"

namespace remuda::tests::nvml {
namespace {

Code fault_of(const Gpu& gpu) {
  const Faults& faults = Session::instance().faults();
  if (faults.lost.contains(gpu.index)) return kGpuIsLost;
  return faults.denied.contains(gpu.index) ? kNoPermission : kSuccess;
}

/// The first GPU for which `is` returns true. `*handle` is written only on success, as the real library does.
template <typename Is>
Code find(Handle* handle, Is is) {
  const Machine* machine = Session::instance().machine();
  if (!machine) return kUninitialized;
  if (!handle) return kInvalidArgument;
  const auto found = std::ranges::find_if(machine->gpus(), [&](const auto& gpu) { return is(*gpu); });
  if (found == machine->gpus().end()) return kNotFound;
  if (const Code fault = fault_of(**found); fault != kSuccess) return fault;
  *handle = found->get();
  return kSuccess;
}

Code find_index(unsigned index, Handle* handle) {
  const Code code = find(handle, [&](const Gpu& gpu) { return gpu.index == static_cast<int>(index); });
  return code == kNotFound ? kInvalidArgument : code;
}

Code find_uuid(const std::string& uuid, Handle* handle) {
  const Code code = find(handle, [&](const Gpu& gpu) { return gpu.device.uuid.value_or("") == uuid; });
  if (code != kNotFound) return code;
  for (const auto& gpu : Session::instance().machine()->gpus())
    for (const auto& instance : gpu->instances)
      if (instance->device.uuid.value_or("") == uuid) return *handle = instance.get(), kSuccess;
  return kNotFound;
}

Code find_pci(const char* text, Handle* handle) {
  const auto address = pci_address(text ? text : "");
  if (!address) return kInvalidArgument;
  return find(handle, [&](const Gpu& gpu) { return gpu.device.pci.value_or("") == *address; });
}

/// As the driver names them: of an instance, its GPU's name and its profile.
std::string name_of(const Gpu& gpu) {
  return gpu.parent ? fmt::format("{} MIG {}", gpu.device.model, gpu.device.profile.value_or("")) : gpu.device.model;
}

Code count(unsigned* count) {
  const Machine* machine = Session::instance().machine();
  if (!machine) return kUninitialized;
  if (!count) return kInvalidArgument;
  *count = static_cast<unsigned>(machine->gpus().size());
  return kSuccess;
}

}  // namespace

NVML_EXPORT Code nvmlDeviceGetCount(unsigned* out) { return count(out); }
NVML_EXPORT Code nvmlDeviceGetCount_v2(unsigned* out) { return count(out); }
NVML_EXPORT Code nvmlDeviceGetHandleByIndex(unsigned index, Handle* handle) { return find_index(index, handle); }
NVML_EXPORT Code nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* handle) { return find_index(index, handle); }
NVML_EXPORT Code nvmlDeviceGetHandleByPciBusId(const char* text, Handle* handle) { return find_pci(text, handle); }
NVML_EXPORT Code nvmlDeviceGetHandleByPciBusId_v2(const char* text, Handle* handle) { return find_pci(text, handle); }

NVML_EXPORT Code nvmlDeviceGetHandleByUUID(const char* uuid, Handle* handle) {
  return uuid ? find_uuid(uuid, handle) : kInvalidArgument;
}

NVML_EXPORT Code nvmlDeviceGetHandleByUUIDV(const Uuid* uuid, Handle* handle) {
  constexpr unsigned kText = 1;
  if (!uuid) return kInvalidArgument;
  if (uuid->version != version_of<Uuid>(1)) return kArgumentVersionMismatch;
  if (uuid->type != kText) return kNotSupported;
  return find_uuid(std::string(uuid->text, ::strnlen(uuid->text, sizeof uuid->text)), handle);
}

NVML_EXPORT Code nvmlDeviceGetHandleBySerial(const char* serial, Handle* handle) {
  if (!serial) return kInvalidArgument;
  return find(handle, [&](const Gpu& gpu) { return gpu.device.serial.value_or("") == serial; });
}

NVML_EXPORT Code nvmlDeviceGetIndex(Handle handle, unsigned* index) {
  return ask(handle, index, [&](const Gpu& gpu) {
    *index = static_cast<unsigned>(gpu.index);
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetMinorNumber(Handle handle, unsigned* minor) {
  return ask(handle, minor, [&](const Gpu& gpu) { return give(gpu.device.minor, minor); });
}

NVML_EXPORT Code nvmlDeviceGetName(Handle handle, char* name, unsigned length) {
  return ask(handle, name, [&](const Gpu& gpu) { return give_text(name_of(gpu), name, length); });
}

NVML_EXPORT Code nvmlDeviceGetUUID(Handle handle, char* uuid, unsigned length) {
  return ask(handle, uuid, [&](const Gpu& gpu) { return give_reading(gpu.device.uuid, uuid, length); });
}

NVML_EXPORT Code nvmlDeviceGetSerial(Handle handle, char* serial, unsigned length) {
  return ask(handle, serial, [&](const Gpu& gpu) { return give_reading(gpu.device.serial, serial, length); });
}

}  // namespace remuda::tests::nvml
