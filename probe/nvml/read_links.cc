#include "probe/nvml/read_links.h"

#include <algorithm>

#include "probe/nvml/ask.h"

namespace remuda::probe::nvml {
namespace {

constexpr const char* kNvlinks = "NVLinks";

/// Where a link leads whose type the driver does not report: to a GPU, by its address, or to the device that the kernel
/// shows there.
Port::To by_address(const std::string& pci, const std::set<std::string>& gpus, const KernelFiles& files) {
  if (pci.empty()) return Port::To::unnamed;
  if (gpus.contains(pci)) return Port::To::gpu;
  const auto is_switch = is_fabric_switch(files, pci);
  if (!is_switch.has_value()) return Port::To::unnamed;
  return is_switch.value() ? Port::To::fabric_switch : Port::To::other;
}

Port::To by_type(unsigned type, const std::string& pci) {
  if (type == kRemoteSwitch) return Port::To::fabric_switch;
  if (type != kRemoteGpu) return Port::To::other;
  return pci.empty() ? Port::To::unnamed : Port::To::gpu;
}

Port read_port(const Lib& lib, Handle handle, unsigned index, const std::set<std::string>& gpus,
               const KernelFiles& files) {
  Port port;
  port.version = ask<unsigned>(kNvlinks, lib.nvlink_version, handle, index).value_or(0);
  const auto remote = ask<PciInfo>(kNvlinks, lib.nvlink_remote_pci, handle, index);
  if (remote.has_value()) port.pci = address_of(remote.value()).value_or("");
  const unsigned type = ask<unsigned>(kNvlinks, lib.nvlink_remote_type, handle, index).value_or(kRemoteUnknown);
  port.to = type == kRemoteUnknown ? by_address(port.pci, gpus, files) : by_type(type, port.pci);
  return port;
}

Reading<PeerAccess> read_peer_access(const Lib& lib, Handle a, Handle b) {
  constexpr const char* kPeer = "peer access";
  auto read = then(ask<unsigned>(kPeer, lib.peer_status, a, b, kPeerRead), peer_access_of);
  if (!read.has_value() || read.value() != PeerAccess::ok) return read;
  return then(ask<unsigned>(kPeer, lib.peer_status, a, b, kPeerWrite), peer_access_of);
}

std::vector<Port> ports_to(const LinkEnd& end, const LinkEnd& other) {
  std::vector<Port> ports;
  for (const Port& port : end.ports.value())
    if (port.to == Port::To::gpu && other.pci.has_value() && port.pci == other.pci.value()) ports.push_back(port);
  return ports;
}

bool is_unnamed(const Port& port) { return port.to == Port::To::unnamed; }

bool is_switched(const LinkEnd& end) {
  const auto& ports = end.ports.value();
  return !ports.empty() && std::ranges::all_of(ports, [](const Port& port) {
    return port.to == Port::To::fabric_switch || is_unnamed(port);
  });
}

void set_fabric(const LinkEnd& a, const std::vector<Port>& ports, bool switched, Link& link) {
  link.fabric = Fabric::nvlink;
  link.fabric_links = static_cast<int>(ports.size());
  link.fabric_switched = switched;
  const auto generation = nvlink_generation(a.chip, ports.front().version);
  link.fabric_version = generation ? Reading<int>(*generation) : no_sense("generation of the NVLinks");
}

void set_unread(const Missing& missing, Link& link) {
  link.path = missing;
  link.peer_access = missing;
  link.fabric = missing;
}

}  // namespace

Reading<std::vector<Port>> read_ports(const Lib& lib, Handle handle, const std::set<std::string>& gpus,
                                      const KernelFiles& files) {
  std::vector<Port> ports;
  if (!lib.nvlink_state) return no_call(kNvlinks);
  for (unsigned i = 0; i < kMaxNvLinks; ++i) {
    unsigned active = 0;
    const Code code = lib.nvlink_state(handle, i, &active);
    if (code == kInvalidArgument) break;  // this GPU, or this driver, has no more
    if (code == kNotSupported) continue;
    if (code != kSuccess) return why(code, kNvlinks);
    if (active == 1) ports.push_back(read_port(lib, handle, i, gpus, files));
  }
  return ports;
}

void fabric_link(const LinkEnd& a, const LinkEnd& b, bool apart, Link& link) {
  for (const LinkEnd* end : {&a, &b})
    if (!end->ports.has_value()) {
      link.fabric = end->ports.missing();
      return;
    }
  const auto there = ports_to(a, b), back = ports_to(b, a);
  const auto &of_a = a.ports.value(), &of_b = b.ports.value();
  link.fabric = Fabric::none;
  if (!there.empty() || !back.empty())
    set_fabric(a, there.size() >= back.size() ? there : back, false, link);
  else if (!apart && is_switched(a) && is_switched(b))
    set_fabric(a, of_a.size() <= of_b.size() ? of_a : of_b, true, link);
  else if (!apart && std::ranges::any_of(of_a, is_unnamed) && std::ranges::any_of(of_b, is_unnamed))
    link.fabric = Missing{MissingReason::unsupported, "NVLinks: the driver does not say where all of them lead"};
}

Link read_link(const Lib& lib, const LinkEnd& a, const LinkEnd& b) {
  Link link{.a = a.id, .b = b.id};
  for (const LinkEnd* end : {&a, &b})
    if (!end->handle) {
      set_unread(end->ports.missing(), link);
      return link;
    }
  link.path = then(ask<unsigned>("common ancestor", lib.common_ancestor, a.handle, b.handle), path_of);
  link.peer_access = read_peer_access(lib, a.handle, b.handle);
  fabric_link(a, b, ask<unsigned>(kNvlinks, lib.peer_status, a.handle, b.handle, kPeerNvlink).value_or(0) != 0, link);
  return link;
}

}  // namespace remuda::probe::nvml
