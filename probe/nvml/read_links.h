// Reading links: how near two GPUs are, whether they can access each other's memory, and which NVLinks join them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "probe/nvml/lib.h"
#include "probe/nvml/map.h"
#include "probe/nvml/place.h"

namespace remuda::probe::nvml {

/// One active NVLink of a GPU.
struct Port {
  enum class To {
    gpu,            ///< the GPU at `pci`
    fabric_switch,  ///< an NVSwitch
    other,          ///< something else that is known
    unnamed,        ///< it is not known what, as in virtual machines
  };
  To to = To::unnamed;
  std::string pci;
  unsigned version = 0;  ///< the driver's number; 0 = not reported
};

/// What a pair needs to know of each of its GPUs.
struct LinkEnd {
  std::string id;
  Handle handle = nullptr;  ///< null: not opened, for the reason in `ports`
  Reading<std::string> pci;
  std::optional<Capability> chip;
  Reading<std::vector<Port>> ports;  ///< of a GPU without NVLink: none
};

/// The active NVLinks of a GPU. `gpus`: the addresses of all GPUs, by which the targets of an old driver's links are
/// recognised.
Reading<std::vector<Port>> read_ports(const Lib& lib, Handle handle, const std::set<std::string>& gpus,
                                      const KernelFiles& files);

/// What the library reports about a pair, and the NVLinks between them (fabric_link). Where one is not open, the
/// reason.
Link read_link(const Lib& lib, const LinkEnd& a, const LinkEnd& b);

/// The NVLinks of a pair: those whose far end is the other GPU. Else, if all links of both end in switches (or it is
/// not known where, as in virtual machines, where the switch is not seen), the GPUs reach each other over as many links
/// as the one with fewer has; not with `apart`, which means that the driver reports no NVLink from one to the other.
/// Pure.
void fabric_link(const LinkEnd& a, const LinkEnd& b, bool apart, Link& link);

}  // namespace remuda::probe::nvml
