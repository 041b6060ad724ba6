// Inventory: everything known of one machine. Plain data; everything later reads it.
//
// The very same JSON is what `remuda list --json` and `remuda record` print and what `--machine FILE` reads in place of
// the live machine: live or recorded, one path. Version 1; fields may be added within a version, and readers ignore
// those they do not know. The fields are documented in docs/inventory.md, made from the lists here.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "device/device.h"

namespace remuda {

/// How near two devices are on the PCI tree, nearest first. The words are those of the familiar matrix.
enum class Path {
  psb,   ///< on one board
  pix,   ///< at most one PCIe switch between
  pxb,   ///< several PCIe switches
  phb,   ///< one PCIe host bridge
  node,  ///< several host bridges of one NUMA node
  sys,   ///< across NUMA nodes
  pcie,  ///< over PCIe, and the source does not say how
};
template <>
struct Words<Path> {
  static constexpr std::array table{std::pair{Path::psb, "PSB"},   std::pair{Path::pix, "PIX"},
                                    std::pair{Path::pxb, "PXB"},   std::pair{Path::phb, "PHB"},
                                    std::pair{Path::node, "NODE"}, std::pair{Path::sys, "SYS"},
                                    std::pair{Path::pcie, "PCIE"}};
};

/// Links between GPUs beside PCIe.
enum class Fabric { none, nvlink, xgmi };
template <>
struct Words<Fabric> {
  static constexpr std::array table{std::pair{Fabric::none, "none"}, std::pair{Fabric::nvlink, "nvlink"},
                                    std::pair{Fabric::xgmi, "xgmi"}};
};

/// Whether the driver lets two GPUs read each other's memory directly.
enum class PeerAccess { ok, chipset, gpu, topology, disabled, unsupported, unknown };
template <>
struct Words<PeerAccess> {
  static constexpr std::array table{std::pair{PeerAccess::ok, "ok"},
                                    std::pair{PeerAccess::chipset, "chipset_not_supported"},
                                    std::pair{PeerAccess::gpu, "gpu_not_supported"},
                                    std::pair{PeerAccess::topology, "topology_not_supported"},
                                    std::pair{PeerAccess::disabled, "disabled"},
                                    std::pair{PeerAccess::unsupported, "not_supported"},
                                    std::pair{PeerAccess::unknown, "unknown"}};
};

/// What joins two devices, or a device and a network card.
struct Link {
  std::string a, b;
  Reading<Path> path;
  Reading<Fabric> fabric;
  Reading<int> fabric_links, fabric_version;
  Reading<bool> fabric_switched;
  Reading<PeerAccess> peer_access;
  Reading<int> weight, hops;
  Reading<double> max_gbps;
  std::string label;

  static constexpr const char* kName = "link";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("a", self.a, "id of a device, or name of a network card; each pair stands once", kRequired);
    visit("b", self.b, "the other end", kRequired);
    visit("path", self.path,
          "how near they are on the PCI tree: PSB, PIX, PXB, PHB, NODE, SYS; PCIE: no more is known");
    visit("fabric", self.fabric, "the direct links between them: none, nvlink or xgmi");
    visit("fabric_links", self.fabric_links, "number of those links");
    visit("fabric_version", self.fabric_version, "their generation");
    visit("fabric_switched", self.fabric_switched, "they lead through a switch that joins all GPUs");
    visit("peer_access", self.peer_access, "whether one may read the other's memory directly, and what forbids it");
    visit("weight", self.weight, "the driver's distance: 15 for each xgmi hop, 20 for each PCIe segment");
    visit("hops", self.hops, "the driver's number of hops; 1 for any path over xgmi, direct or not");
    visit("max_gbps", self.max_gbps, "the driver's figure for the link's bandwidth in each direction, 10^9 bytes/s");
    visit("label", self.label, "the source's own word for the pair, where it is not the one remuda prints");
  }
  bool operator==(const Link&) const = default;
};

/// A network card, as far as GPUs care: how near it is.
struct Nic {
  std::string name;
  Reading<std::string> pci;
  Reading<int> numa_node;

  static constexpr const char* kName = "nic";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("name", self.name, "its name: mlx5_0, eth0", kRequired);
    visit("pci", self.pci, "PCI address");
    visit("numa_node", self.numa_node, "NUMA node it belongs to");
  }
  bool operator==(const Nic&) const = default;
};

struct NumaNode {
  int node = 0;
  Reading<std::vector<int>> cores;
  Reading<int64_t> memory_bytes;
  Reading<std::vector<int>> distances;

  static constexpr const char* kName = "numa_node";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("node", self.node, "the kernel's number", kRequired);
    visit("cores", self.cores, "its logical CPUs");
    visit("memory_bytes", self.memory_bytes, "its memory");
    visit("distances", self.distances, "the kernel's distance to each node, 10 = local, in the order of this list");
  }
  bool operator==(const NumaNode&) const = default;
};

/// A driver of devices, and the library that speaks to it.
struct Driver {
  std::string vendor;
  Reading<std::string> version, module_version, library_version, runtime_version;

  static constexpr const char* kName = "driver";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("vendor", self.vendor, "whose devices it drives", kRequired);
    visit("version", self.version, "version of the driver");
    visit("module_version", self.module_version, "version of the loaded kernel module");
    visit("library_version", self.library_version, "version of the library that was asked");
    visit("runtime_version", self.runtime_version, "newest compute runtime it serves, 12.4");
  }
  bool operator==(const Driver&) const = default;
};

/// What one way of finding devices had to say.
struct ProbeReport {
  std::string name;
  int devices = 0;
  std::string reason;
  bool blind = false;

  static constexpr const char* kName = "probe";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("name", self.name, "which probe", kRequired);
    visit("devices", self.devices, "how many devices it found");
    visit("reason", self.reason, "why it could not look, or what kept it from seeing all");
    visit("blind", self.blind,
          "its driver is there and does not answer, so that it can have devices that are not listed");
  }
  bool operator==(const ProbeReport&) const = default;
};

/// The rate of one precision of matrix products.
struct MeasuredGemm {
  std::string precision;
  double tflops = 0;

  static constexpr const char* kName = "gemm";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("precision", self.precision, "float64, float32, bfloat16, float16", kRequired);
    visit("tflops", self.tflops, "10^12 floating-point operations per second", kRequired);
  }
  bool operator==(const MeasuredGemm&) const = default;
};

struct MeasuredDevice {
  std::string id;
  double time_s = 0;
  Reading<double> host_to_device_gbps, device_to_host_gbps, latency_us;
  std::vector<MeasuredGemm> gemm;

  static constexpr const char* kName = "measured_device";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("id", self.id, "the device", kRequired);
    visit("time_s", self.time_s, "when it was measured, in seconds since 1970");
    visit("host_to_device_gbps", self.host_to_device_gbps, "from host memory to the device, 10^9 bytes/s");
    visit("device_to_host_gbps", self.device_to_host_gbps, "from the device to host memory");
    visit("latency_us", self.latency_us, "of the smallest copy to the device, microseconds");
    visit("gemm", self.gemm, "matrix products, by precision");
  }
  bool operator==(const MeasuredDevice&) const = default;
};

struct MeasuredLink {
  std::string a, b;
  double time_s = 0;
  double gbps = 0;
  Reading<double> latency_us;

  static constexpr const char* kName = "measured_link";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("a", self.a, "id of a device", kRequired);
    visit("b", self.b, "the other end", kRequired);
    visit("time_s", self.time_s, "when it was measured, in seconds since 1970");
    visit("gbps", self.gbps, "from one to the other, the slower direction, 10^9 bytes/s", kRequired);
    visit("latency_us", self.latency_us, "of the smallest message, microseconds");
  }
  bool operator==(const MeasuredLink&) const = default;
};

/// The devices' status at one time.
struct Sample {
  double time_s = 0;
  std::vector<Status> devices;

  static constexpr const char* kName = "sample";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("time_s", self.time_s, "when it was taken, in seconds since 1970", kRequired);
    visit("devices", self.devices, "a status for each device, in the order of the inventory's devices", kRequired);
  }
  bool operator==(const Sample&) const = default;
};

struct Inventory {
  static constexpr const char* kName = "inventory";
  static constexpr int kVersion = 1;
  static constexpr const char* kLive = "live";  ///< the source of a machine that was read and not imported
  int version = kVersion;
  std::string host;
  double time_s = 0;
  std::string source;
  std::vector<ProbeReport> probes;
  std::vector<Driver> drivers;
  std::vector<NumaNode> numa;
  std::vector<Device> devices;
  std::vector<Nic> nics;
  std::vector<Link> links;
  std::vector<MeasuredDevice> measured_devices;
  std::vector<MeasuredLink> measured_links;
  std::vector<Sample> samples;
  std::vector<std::string> notes;

  /// By exact id; nothing when there is none.
  const Device* find(std::string_view id) const;
  /// By what people type: id, label (gpu:0), index of a GPU ("0"), PCI address in any spelling, or the beginning of
  /// exactly one UUID (four characters or more beyond its prefix). A usage error that lists the devices otherwise.
  Result<const Device*> resolve(std::string_view name) const;
  /// Why there may be devices that are not listed, as the driver of such ones does not answer: "nvml: the driver's
  /// library ..."; empty where all are.
  std::string unseen() const;
  /// The link of a pair, in either order; nothing when none is recorded.
  const Link* link(std::string_view a, std::string_view b) const;

  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("version", self.version, "version of this format: 1", kRequired);
    visit("host", self.host, "name of the machine", kRequired);
    visit("time_s", self.time_s, "when it was taken, in seconds since 1970; every reading without a time of its own");
    visit("source", self.source, "where it comes from: live, or the kind of file it was imported from");
    visit("probes", self.probes, "what each way of finding devices had to say");
    visit("drivers", self.drivers, "drivers and their versions");
    visit("numa", self.numa, "NUMA nodes");
    visit("devices", self.devices, "CPUs and GPUs", kRequired);
    visit("nics", self.nics, "network cards");
    visit("links", self.links, "what joins the devices, pair by pair");
    visit("measured_devices", self.measured_devices, "what `remuda bench links` measured of each device");
    visit("measured_links", self.measured_links, "what `remuda bench links` measured of each pair");
    visit("samples", self.samples, "what a recording saw over time");
    visit("notes", self.notes, "what a reader should know: what the source lacks or contradicts");
  }
  bool operator==(const Inventory&) const = default;
};

Json to_json(const Inventory& inventory);
/// Any bytes: an inventory that keeps the rules (ids are unique; links, parents and samples name devices that are
/// there), or a usage error of one sentence that starts with `where`.
Result<Inventory> parse_inventory(std::string_view text, std::string_view where);

/// The JSON Schema (2020-12) of the format, from the same lists; kept as docs/inventory.schema.json.
Json inventory_schema();
/// docs/inventory.md: every field with its meaning.
std::string inventory_reference();

}  // namespace remuda
