// The links of two GPUs: PCI distance, peer access, NVLinks.
#include "tests/nvml/answer.h"
#include "tests/nvml/pci.h"

namespace remuda::tests::nvml {

enum PeerStatus : unsigned { kOk, kChipset, kGpu, kTopology, kDisabled, kNoPeers, kUnknownPeers };

namespace {

enum Level : unsigned { kInternal = 0, kSingle = 10, kMultiple = 20, kHostBridge = 30, kNode = 40, kSystem = 50 };

/// A path that the recording lacks is the longest, as every pair has one.
Level level_of(const Link* link) {
  switch (link ? link->path.value_or(Path::sys) : Path::sys) {
    case Path::psb:
      return kInternal;
    case Path::pix:
      return kSingle;
    case Path::pxb:
      return kMultiple;
    case Path::phb:
      return kHostBridge;
    case Path::node:
      return kNode;
    case Path::sys:
    case Path::pcie:
      break;
  }
  return kSystem;
}

PeerStatus status_of(PeerAccess access) {
  switch (access) {
    case PeerAccess::ok:
      return kOk;
    case PeerAccess::chipset:
      return kChipset;
    case PeerAccess::gpu:
      return kGpu;
    case PeerAccess::topology:
      return kTopology;
    case PeerAccess::disabled:
      return kDisabled;
    case PeerAccess::unsupported:
      return kNoPeers;
    case PeerAccess::unknown:
      break;
  }
  return kUnknownPeers;
}

bool has_nvlink(const Link& link) { return link.fabric.has_value() && link.fabric.value() == Fabric::nvlink; }

Code give_peer_status(const Link* link, unsigned index, PeerStatus* status) {
  constexpr unsigned kNvlinkIndex = 2, kAtomicsIndex = 3, kIndices = 5;
  if (index >= kIndices) return kInvalidArgument;
  if (!link) return kNotSupported;
  if (index == kNvlinkIndex || index == kAtomicsIndex) {
    *status = has_nvlink(*link) ? kOk : kNoPeers;
    return kSuccess;
  }
  if (!link->peer_access.has_value()) return code_of(link->peer_access.missing());
  *status = status_of(link->peer_access.value());
  return kSuccess;
}

/// For two different whole GPUs.
template <typename Body>
Code ask_pair(Handle a, Handle b, const void* out, Body body) {
  if (const Code code = admit(b); code != kSuccess) return code;
  return ask(a, out, [&](const Gpu& gpu) {
    if (gpu.parent || b->parent) return kNotSupported;
    if (a == b) return kInvalidArgument;
    return body(Session::instance().machine()->link(gpu, *b));
  });
}

template <typename Body>
Code ask_port(Handle handle, unsigned link, const void* out, Body body) {
  return ask(handle, out, [&](const Gpu& gpu) {
    if (link >= kMaxNvlinks) return kInvalidArgument;
    if (gpu.ports.empty()) return kNotSupported;
    return link < gpu.ports.size() ? body(gpu.ports[link]) : kInvalidArgument;
  });
}

template <typename Body>
Code ask_remote(Handle handle, unsigned link, const void* out, Body body) {
  return ask_port(handle, link, out, [&](const Port& port) { return port.active ? body(port) : kNotSupported; });
}

Code give_remote_pci(Handle handle, unsigned link, PciInfo* pci) {
  return ask_remote(handle, link, pci, [&](const Port& port) {
    fill_pci(port.pci, *pci);
    return kSuccess;
  });
}

}  // namespace

NVML_EXPORT Code nvmlDeviceGetTopologyCommonAncestor(Handle a, Handle b, unsigned* level) {
  return ask_pair(a, b, level, [&](const Link* link) {
    *level = level_of(link);
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetP2PStatus(Handle a, Handle b, unsigned index, PeerStatus* status) {
  return ask_pair(a, b, status, [&](const Link* link) { return give_peer_status(link, index, status); });
}

NVML_EXPORT Code nvmlDeviceGetNvLinkState(Handle handle, unsigned link, unsigned* active) {
  return ask_port(handle, link, active, [&](const Port& port) {
    *active = port.active ? 1 : 0;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetNvLinkVersion(Handle handle, unsigned link, unsigned* version) {
  return ask_remote(handle, link, version, [&](const Port& port) { return give(port.version, version); });
}

NVML_EXPORT Code nvmlDeviceGetNvLinkCapability(Handle handle, unsigned link, unsigned capability, unsigned* value) {
  constexpr unsigned kCapabilities = 6, kSliBridge = 4;
  return ask_port(handle, link, value, [&](const Port&) {
    if (capability >= kCapabilities) return kInvalidArgument;
    *value = capability == kSliBridge ? 0 : 1;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetNvLinkRemoteDeviceType(Handle handle, unsigned link, unsigned* type) {
  return ask_remote(handle, link, type, [&](const Port& port) {
    *type = port.type;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetNvLinkRemotePciInfo(Handle handle, unsigned link, PciInfo* pci) {
  return give_remote_pci(handle, link, pci);
}

NVML_EXPORT Code nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle handle, unsigned link, PciInfo* pci) {
  return give_remote_pci(handle, link, pci);
}

}  // namespace remuda::tests::nvml
