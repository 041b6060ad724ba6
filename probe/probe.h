// Probe: one way of finding devices. It can be constructed on every machine, and works (is viable) on some.
//
// A backend folder (probe/nvml, probe/amd, probe/pci, probe/cpu) exports one factory in its probe.h and nothing else.
// Probes read and never change anything: no mode, no limit, no reset.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"

namespace remuda::probe {

/// The result of one probe. Ids need not be final (see probe/merge.h); links name devices by the ids used here.
struct Finding {
  std::vector<Device> devices;
  std::vector<Link> links;
  std::vector<Nic> nics;
  std::vector<NumaNode> numa;
  std::vector<Driver> drivers;
  std::string reason;  ///< one sentence that says why it could not read all; empty when it did
  bool blind = false;  ///< there is a driver that does not answer, so that devices may be there that are not found
};

class Probe {
 public:
  virtual ~Probe() = default;
  virtual const char* name() const = 0;
  /// Nothing when the probe can work here; otherwise one sentence that says why not. No full stop.
  virtual std::optional<std::string> unviable() = 0;
  /// After unviable() has said why not: whether that is a driver that does not answer, as in Finding::blind.
  virtual bool is_blind() const { return false; }
  /// The maker of all its devices, as in Device::vendor, if what it does not list is driven by nothing; else empty.
  virtual std::string_view vendor() const { return {}; }
  /// May be called repeatedly: a probe keeps what it opened, and each call reads the current state. A device that fails
  /// is still included, its readings Missing with the reason; an error means only that the request was wrong.
  virtual Result<Finding> find() = 0;
};

}  // namespace remuda::probe
