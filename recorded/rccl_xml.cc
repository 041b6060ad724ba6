#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "device/pci_address.h"
#include "recorded/formats.h"
#include "recorded/machine.h"

namespace remuda::recorded {
namespace {

constexpr size_t kMostEnds = 256;
constexpr int kMostLinks = 999;
constexpr std::string_view kSwitchClass = "0x068000";

/// Links that lead from a GPU to another one.
struct Lanes {
  Fabric fabric = Fabric::none;
  int count = 0;
};

/// A GPU or a network card, and where it hangs.
struct End {
  const Element* element = nullptr;   ///< <gpu> or <net>; its <pci> where it has no element of its own
  const Element* function = nullptr;  ///< its own <pci>; null for a card without one
  const Element* cpu = nullptr;
  std::vector<const Element*> bridges;  ///< from the CPU down
  std::string id;
  std::pair<int, size_t> place;        ///< of a GPU: its number, then its position in the file
  std::map<std::string, Lanes> lanes;  ///< by PCI address of the other GPU
  int lanes_to_switches = 0;
  int lanes_to_itself = 0, lanes_elsewhere = 0;  ///< to no other GPU of the file
};

struct Tree {
  std::vector<End> gpus, cards;
  std::vector<End> functions;  ///< <pci> of the class of a GPU or a network card, without such an element in it
};

/// What stands above the element that is visited.
struct Above {
  const Element* cpu = nullptr;
  std::vector<const Element*> pci;
};

End end_of(const Element& element, const Above& above) {
  End end{.element = &element, .cpu = above.cpu, .bridges = above.pci, .id = {}};
  if (end.bridges.empty()) return end;
  end.function = end.bridges.back();
  end.bridges.pop_back();
  return end;
}

/// Of PCI, without "0x": display controllers and accelerators.
bool is_gpu_class(std::string_view code) { return code.starts_with("03") || code.starts_with("12"); }

std::string_view class_of(const Element& pci) {
  const std::string_view code = pci.attribute("class");
  return code.substr(code.starts_with("0x") || code.starts_with("0X") ? 2 : 0);
}

/// Also where the vendor is not known; not the display of a server's management controller.
bool is_gpu(const Element& pci) {
  constexpr std::array<std::string_view, 4> kVendors{"", "0x10de", "0x1002", "0x8086"};
  return is_gpu_class(class_of(pci)) && std::ranges::count(kVendors, pci.attribute("vendor")) > 0;
}

/// A function that nothing says more of: of a GPU, or of a card for a network.
bool is_bare(const Element& pci) {
  return (is_gpu(pci) && !pci.child("gpu")) ||
         (class_of(pci).starts_with("02") && !pci.child("nic") && !pci.child("net"));
}

/// As deep as the XML is: 64 at most.
void walk(const Element& element, Above& above, Tree& tree) {
  for (const Element& child : element.children) {
    if (child.name == "gpu") {
      tree.gpus.push_back(end_of(child, above));
      tree.gpus.back().place = {whole_number(child.attribute("dev")).value_or(0), tree.gpus.size()};
    }
    if (child.name == "net") tree.cards.push_back(end_of(child, above));
    if (child.name == "cpu") {
      Above inside{&child, {}};
      walk(child, inside, tree);
    } else if (child.name == "pci") {
      above.pci.push_back(&child);
      if (is_bare(child)) tree.functions.push_back(end_of(child, above));
      walk(child, above, tree);
      above.pci.pop_back();
    } else if (child.name == "nic") {
      walk(child, above, tree);
    }
  }
}

std::string text_attribute(const Element& element, std::string_view name) { return brief(element.attribute(name), 64); }

Reading<int> number_attribute(const Element& element, std::string_view name) {
  const auto number = whole_number(element.attribute(name));
  return number ? Reading<int>(*number) : Reading<int>();
}

/// "00000000,0000000f": 32 CPUs in each group, the last group first.
Reading<std::vector<int>> cores_of_mask(std::string_view mask) {
  constexpr int kMostCores = 8192;  // as many as Linux can have
  std::vector<int> cores;
  int bit = 0;
  for (auto digit = mask.rbegin(); digit != mask.rend(); ++digit) {
    if (*digit == ',') continue;
    const size_t value = std::string_view("0123456789abcdef").find(static_cast<char>(*digit | 0x20));
    if (value == std::string_view::npos || bit >= kMostCores)
      return Missing{MissingReason::unsupported, fmt::format("the source says {}", brief(mask, 60))};
    for (int i = 0; i < 4; ++i)
      if (value >> i & 1U) cores.push_back(bit + i);
    bit += 4;
  }
  if (cores.empty()) return Missing{MissingReason::unsupported, "the source names no CPU"};
  return cores;
}

/// "16.0 GT/s PCIe", "8 GT/s".
Reading<int> generation_of(std::string_view speed) {
  constexpr std::array<std::pair<std::string_view, int>, 8> kSpeeds{
      {{"2.5 ", 1}, {"5 ", 2}, {"5.0 ", 2}, {"8 ", 3}, {"8.0 ", 3}, {"16", 4}, {"32", 5}, {"64", 6}}};
  for (const auto& [beginning, generation] : kSpeeds)
    if (speed.starts_with(beginning)) return generation;
  return {};
}

std::string vendor_of(const End& gpu) {
  const std::string_view id = gpu.function ? gpu.function->attribute("vendor") : std::string_view{};
  if (id == "0x10de") return "NVIDIA";
  if (id == "0x1002") return "AMD";
  if (!id.empty()) return fmt::format("PCI vendor {}", brief(id, 10));
  if (gpu.element->child("nvlink")) return "NVIDIA";
  return gpu.element->child("xgmi") || !gpu.element->attribute("gcn").empty() ? "AMD" : "";
}

/// "80" is 8.0 where the vendor is one that has such numbers; "gfx942" or "908" is a target.
void read_generation(const Element& gpu, Device& device) {
  const std::string gcn = text_attribute(gpu, "gcn");
  const auto sm = whole_number(gpu.attribute("sm"));
  if (gcn == "910")
    device.architecture = std::string("gfx90a");
  else if (gcn.starts_with("gfx"))
    device.architecture = gcn;
  else if (gcn.size() == 3 && whole_number(gcn))
    device.architecture = "gfx" + gcn;
  else if (gcn.empty() && sm && *sm >= 10 && *sm < 1000)
    device.compute_capability = fmt::format("{}.{}", *sm / 10, *sm % 10);
}

std::optional<std::string> address_of(const End& end) {
  return end.function ? pci_address(end.function->attribute("busid")) : std::nullopt;
}

/// Whether the link leads to what is no GPU, as a CPU with such links.
bool leads_to_another_kind(const Element& link) {
  const std::string_view code = link.attribute("tclass");
  return !code.empty() && !is_gpu_class(code.substr(code.starts_with("0x") ? 2 : 0));
}

void read_lanes(End& gpu, const std::set<std::string>& gpus) {
  const auto own = address_of(gpu);
  for (const Element& link : gpu.element->children) {
    if (link.name != "nvlink" && link.name != "xgmi") continue;
    const int count = std::min(whole_number(link.attribute("count")).value_or(0), kMostLinks);
    const auto add = [count](int& sum) { sum = std::min(sum + count, kMostLinks); };
    const auto target = pci_address(link.attribute("target"));
    if (link.attribute("tclass") == kSwitchClass) {
      add(gpu.lanes_to_switches);
    } else if (target && target == own) {
      add(gpu.lanes_to_itself);
    } else if (target && !gpus.contains(*target)) {
      if (!leads_to_another_kind(link)) add(gpu.lanes_elsewhere);
    } else if (target) {
      Lanes& lanes = gpu.lanes[*target];
      lanes.fabric = link.name == "xgmi" ? Fabric::xgmi : Fabric::nvlink;
      add(lanes.count);
    }
  }
}

void add_gpu(End& gpu, Inventory& inventory) {
  Device device;
  device.kind = DeviceKind::gpu;
  device.index = static_cast<int>(inventory.devices.size());
  device.vendor = vendor_of(gpu);
  read_generation(*gpu.element, device);
  if (gpu.function) {
    if (const auto address = pci_address(gpu.function->attribute("busid"))) device.pci = *address;
    device.pcie_generation_max = generation_of(gpu.function->attribute("link_speed"));
    device.pcie_width_max = number_attribute(*gpu.function, "link_width");
  }
  if (gpu.cpu) {
    device.numa_node = number_attribute(*gpu.cpu, "numaid");
    device.cores = cores_of_mask(gpu.cpu->attribute("affinity"));
  }
  device.id = device.pci.value_or(device.label());
  if (inventory.find(device.id)) device.id = device.label();
  gpu.id = device.id;
  inventory.devices.push_back(std::move(device));
}

void add_card(End& card, Inventory& inventory) {
  Nic nic{.name = text_attribute(*card.element, "name"), .pci = {}, .numa_node = {}};
  if (nic.name.empty()) nic.name = fmt::format("net{}", inventory.nics.size());
  const bool taken =
      inventory.find(nic.name) || std::ranges::find(inventory.nics, nic.name, &Nic::name) != inventory.nics.end();
  if (taken) return add_note(fmt::format("a second network card {} is left out", nic.name), inventory);
  if (card.function)
    if (const auto address = pci_address(card.function->attribute("busid"))) nic.pci = *address;
  if (card.cpu) nic.numa_node = number_attribute(*card.cpu, "numaid");
  card.id = nic.name;
  inventory.nics.push_back(std::move(nic));
}

void add_node(const Element& cpu, Inventory& inventory) {
  const auto node = number_attribute(cpu, "numaid");
  if (!node.has_value()) return;
  const bool known = std::ranges::find(inventory.numa, node.value(), &NumaNode::node) != inventory.numa.end();
  if (known) return add_note(fmt::format("NUMA node {} stands twice", node.value()), inventory);
  NumaNode numa;
  numa.node = node.value();
  numa.cores = cores_of_mask(cpu.attribute("affinity"));
  inventory.numa.push_back(std::move(numa));
}

/// The classes of the library that wrote the file: one bridge between is PIX, several are PXB, a CPU is PHB, two are
/// SYS.
Path path_between(const End& a, const End& b) {
  if (a.cpu != b.cpu) return Path::sys;
  if (a.function && a.function == b.function) return Path::psb;
  const auto parted = std::ranges::mismatch(a.bridges, b.bridges);
  if (parted.in1 == a.bridges.begin()) return Path::phb;
  const auto rest = (a.bridges.end() - parted.in1) + (b.bridges.end() - parted.in2);
  return rest == 0 ? Path::pix : Path::pxb;
}

Lanes lanes_to(const End& gpu, const End& other) {
  const auto found = gpu.lanes.find(address_of(other).value_or(""));
  return found == gpu.lanes.end() ? Lanes{} : found->second;
}

void read_fabric(const End& a, const End& b, Link& link) {
  const Lanes forth = lanes_to(a, b), back = lanes_to(b, a);
  const int switched = std::min(a.lanes_to_switches, b.lanes_to_switches);
  if (forth.count > 0 || back.count > 0) {
    link.fabric = forth.count > 0 ? forth.fabric : back.fabric;
    link.fabric_switched = false;
    if (forth.count == 0 || back.count == 0 || forth.count == back.count)
      link.fabric_links = std::max(forth.count, back.count);
    else
      link.fabric_links =
          Missing{MissingReason::unsupported, fmt::format("the source says {} in one direction and {} in "
                                                          "the other",
                                                          forth.count, back.count)};
  } else if (switched > 0) {
    link.fabric = Fabric::nvlink;
    link.fabric_switched = true;
    link.fabric_links = switched;
  } else if (a.lanes_to_itself + b.lanes_to_itself > 0) {
    link.fabric = Missing{MissingReason::unsupported, "the source says that links lead from a GPU to itself"};
  } else {
    link.fabric = Fabric::none;
  }
}

/// "12 links of gpu:0 lead to itself".
void note_lanes(const End& gpu, Inventory& inventory) {
  const std::string whose = fmt::format("{} ({})", inventory.find(gpu.id)->label(), gpu.id);
  const auto note = [&](int count, const char* where) {
    if (count > 0) add_note(fmt::format("{} of {} lead to {}", counted(count, "link"), whose, where), inventory);
  };
  note(gpu.lanes_to_itself, "itself, and so to no other GPU of the source");
  note(gpu.lanes_elsewhere, "what is no GPU of the source");
}

/// Where the source has no <gpu>, and none of a network card, the PCI functions of such classes are all that is known.
void take_functions(Tree& tree, Inventory& inventory) {
  size_t left_out = 0;
  const bool has_gpus = !tree.gpus.empty(), has_cards = !tree.cards.empty();
  for (End& function : tree.functions) {
    const bool is_gpu = is_gpu_class(class_of(*function.element));
    left_out += is_gpu && has_gpus;
    if (is_gpu ? has_gpus : has_cards) continue;
    std::vector<End>& ends = is_gpu ? tree.gpus : tree.cards;
    ends.push_back(std::move(function));
    ends.back().place = {0, ends.size()};
  }
  if (left_out > 0)
    add_note(fmt::format("{} of the class of a GPU, without a <gpu>, are left out",
                         counted(static_cast<double>(left_out), "PCI function")),
             inventory);
  if (!has_gpus && !tree.gpus.empty())
    add_note("the source has no <gpu>: its GPUs are the PCI functions of their classes", inventory);
}

void add_pairs(const Tree& tree, Inventory& inventory) {
  std::vector<const End*> ends;
  for (const std::vector<End>* kind : {&tree.gpus, &tree.cards})
    for (const End& end : *kind)
      if (!end.id.empty()) ends.push_back(&end);
  const size_t gpus = tree.gpus.size();
  for (size_t a = 0; a < ends.size(); ++a)
    for (size_t b = a + 1; b < ends.size(); ++b) {
      Link link{.a = ends[a]->id, .b = ends[b]->id};
      link.path = path_between(*ends[a], *ends[b]);
      if (b < gpus) read_fabric(*ends[a], *ends[b], link);
      inventory.links.push_back(std::move(link));
    }
}

}  // namespace

Result<Inventory> import_rccl_xml(const Text& text, const Element& root) {
  Tree tree;
  Above above;
  walk(root, above, tree);
  Inventory inventory;
  take_functions(tree, inventory);
  if (tree.gpus.empty())
    return usage_error(fmt::format(
        "{} names no GPU: it has neither a <gpu> nor a <pci> of the class of one, as NCCL_TOPO_DUMP_FILE writes them",
        text.where));
  if (tree.gpus.size() + tree.cards.size() > kMostEnds)
    return usage_error(fmt::format("{} has {} GPUs and network cards; at most {} are read", text.where,
                                   tree.gpus.size() + tree.cards.size(), kMostEnds));
  std::ranges::sort(tree.gpus, {}, &End::place);
  std::set<std::string> addresses;
  for (const End& gpu : tree.gpus) addresses.insert(address_of(gpu).value_or(""));
  for (End& gpu : tree.gpus) read_lanes(gpu, addresses);
  for (End& gpu : tree.gpus) add_gpu(gpu, inventory);
  for (const End& gpu : tree.gpus) note_lanes(gpu, inventory);
  for (End& card : tree.cards) add_card(card, inventory);
  for (const Element& element : root.children)
    if (element.name == "cpu") add_node(element, inventory);
  add_pairs(tree, inventory);
  finish(text, "NCCL or RCCL topology file", inventory);
  return inventory;
}

}  // namespace remuda::recorded
