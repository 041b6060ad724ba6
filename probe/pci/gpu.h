// GPUs on the PCI bus.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "device/device.h"
#include "probe/pci/path.h"

namespace remuda::probe::pci {

struct Gpu {
  Device device;  ///< its id is its PCI address; the caller sets the model
  Place place;
  uint16_t vendor_id, device_id;
};

/// The GPU at a folder of /sys/bus/pci/devices; nothing when that device is not a GPU. See probe/pci/probe.h.
std::optional<Gpu> read_gpu(const std::string& path);

}  // namespace remuda::probe::pci
