#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/checks/checks.h"

namespace remuda::doctor {
namespace {

constexpr const char* kPassThrough = "add iommu=pt to the kernel's command line, then reboot";

Diagnosis judge_pcie(const Device& device) {
  const Status& now = device.status;
  const auto& width = now.pcie_width;
  if (width.has_value() && device.pcie_width_max.has_value() && width.value() < device.pcie_width_max.value())
    return warn(
        fmt::format("{} runs on {} of its {} PCIe lanes", called(device), width.value(), device.pcie_width_max.value()),
        fmt::format("seat the card anew, or give it another slot; sudo lspci -vv -s {} shows LnkSta", address(device)));
  const auto &slot = device.pcie_generation_max, &card = device.pcie_generation_card;
  if (slot.has_value() && card.has_value() && slot.value() < card.value())
    return warn(
        fmt::format("{} could do PCIe generation {}, and its slot does {}", called(device), card.value(), slot.value()),
        "use another slot, or set the slot's speed in the firmware setup");
  const bool told = (width.has_value() && device.pcie_width_max.has_value()) || (slot.has_value() && card.has_value());
  return told ? pass("") : skip_for(width);
}

struct Pair {
  const Device *a, *b;
  const Link* link;
};

/// All pairs of GPUs whose peer access is known.
std::vector<Pair> known_pairs(const Inventory& inventory) {
  std::vector<Pair> pairs;
  const auto all = gpus(inventory);
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = i + 1; j < all.size(); ++j) {
      const Link* link = inventory.link(all[i]->id, all[j]->id);
      if (link && link->peer_access.has_value()) pairs.push_back({all[i], all[j], link});
    }
  return pairs;
}

bool any_isolation(const HostFacts& facts) {
  return std::ranges::any_of(facts.slots.value_or({}), [](const GpuSlot& slot) {
    return slot.iommu_translates.value_or(false) || !slot.acs_redirects.value_or({}).empty();
  });
}

/// What prevents peer access, in words.
const char* meaning(PeerAccess access) {
  switch (access) {
    case PeerAccess::chipset:
      return "the chipset does not allow it";
    case PeerAccess::gpu:
      return "these models do not offer it";
    case PeerAccess::topology:
      return "the way between them does not allow it";
    case PeerAccess::disabled:
      return "it is switched off in the driver";
    default:
      return "the driver does not say why";
  }
}

Diagnosis forbidden(const std::vector<Pair>& pairs, size_t known, PeerAccess access, const HostFacts& facts) {
  const Pair& first = pairs.front();
  const std::string over =
      first.link->path.has_value() ? fmt::format(" over {}", to_string(first.link->path.value())) : "";
  const std::string sentence =
      fmt::format("{} of {} of GPUs cannot reach each other's memory, {} and {}{} among them: {}", pairs.size(),
                  counted(known, "pair"), first.a->label(), first.b->label(), over, meaning(access));
  if (access != PeerAccess::gpu && any_isolation(facts))
    return warn(sentence + "; the IOMMU or ACS stands between them", "see the check isolation");
  if (access == PeerAccess::gpu)
    return warn(sentence, "nothing to mend: their copies go through host memory; keep pairs with links in one job");
  if (access == PeerAccess::disabled)
    return warn(sentence, "grep -r NVreg_RegistryDwords /etc/modprobe.d shows what switches it off");
  return warn(sentence, "put both cards below one PCIe root; nvidia-smi topo -p2p r shows the pairs");
}

Diagnosis uneven(const std::map<int, size_t>& count, size_t nodes) {
  const auto [least, most] = std::ranges::minmax_element(count, {}, [](const auto& entry) { return entry.second; });
  constexpr const char* kRemedy = "keep a job's GPUs on one node, or move cards to slots of the other nodes";
  if (count.size() == 1 && nodes > 1 && most->second > 1)
    return warn(fmt::format("all {} GPUs hang on NUMA node {} of {}", most->second, most->first, nodes), kRemedy);
  if (most->second > least->second + 1)
    return warn(fmt::format("NUMA node {} has {}, node {} has {}", most->first, counted(most->second, "GPU"),
                            least->first, least->second),
                kRemedy);
  if (count.size() == 1) return pass("all GPUs on one NUMA node");
  return pass(fmt::format("GPUs are even over {} NUMA nodes", count.size()));
}

}  // namespace

Diagnoses check_pcie(const Inventory& inventory, const HostFacts&) {
  return over_gpus(inventory, "PCIe as wide as card and slot can", judge_pcie);
}

Diagnoses check_peer_access(const Inventory& inventory, const HostFacts& facts) {
  if (gpus(inventory).size() < 2) return {skip("fewer than two GPUs here")};
  const auto known = known_pairs(inventory);
  if (known.empty()) return {skip("no pair of GPUs reported whether it has peer access")};
  std::map<PeerAccess, std::vector<Pair>> by_access;
  for (const Pair& pair : known) by_access[pair.link->peer_access.value()].push_back(pair);
  Diagnoses all;
  for (const auto& [access, pairs] : by_access)
    if (access != PeerAccess::ok) all.push_back(forbidden(pairs, known.size(), access, facts));
  if (all.empty()) all.push_back(pass(fmt::format("{} of GPUs: peer access", counted(known.size(), "pair"))));
  return all;
}

Diagnoses check_isolation(const Inventory& inventory, const HostFacts& facts) {
  if (gpus(inventory).size() < 2) return {skip("fewer than two GPUs here")};
  if (!facts.slots.has_value() || facts.slots.value().empty()) return {skip_for(facts.slots)};
  Diagnoses all;
  std::set<std::string> ports;
  const Missing* unknown = nullptr;
  size_t translated = 0;
  for (const GpuSlot& slot : facts.slots.value()) {
    translated += slot.iommu_translates.value_or(false);
    for (const std::string& port : slot.acs_redirects.value_or({})) ports.insert(port);
    if (!slot.acs_redirects.has_value()) unknown = &slot.acs_redirects.missing();
    if (!slot.iommu_translates.has_value()) unknown = &slot.iommu_translates.missing();
  }
  if (translated > 0)
    all.push_back(warn(fmt::format("the IOMMU translates the addresses of {}: copies between GPUs are slow or hang",
                                   counted(translated, "GPU")),
                       kPassThrough));
  if (!ports.empty())
    all.push_back(
        warn(fmt::format("ACS sends what GPUs have for each other up to the root, at {}",
                         listed({ports.begin(), ports.end()})),
             fmt::format("sudo setpci -s {} ECAP_ACS+0x6.w=0000, for each port, after every boot", *ports.begin())));
  if (all.empty()) all.push_back(unknown ? skip(*unknown) : pass("neither IOMMU nor ACS stands between the GPUs"));
  return all;
}

Diagnoses check_numa_balance(const Inventory& inventory, const HostFacts&) {
  const auto all = gpus(inventory);
  if (all.size() < 2) return {skip("fewer than two GPUs here")};
  if (inventory.numa.size() == 1) return {pass("one NUMA node")};
  std::map<int, size_t> count;
  for (const Device* device : all) {
    if (!device->numa_node.has_value()) return {skip_for(device->numa_node)};
    ++count[device->numa_node.value()];
  }
  const auto nodes = std::ranges::count_if(
      inventory.numa, [](const NumaNode& node) { return !node.cores.has_value() || !node.cores.value().empty(); });
  return {uneven(count, static_cast<size_t>(nodes))};
}

Diagnoses check_numa_memory(const Inventory& inventory, const HostFacts&) {
  Diagnoses all;
  size_t told = 0;
  for (const NumaNode& node : inventory.numa) {
    if (!node.memory_bytes.has_value() || node.cores.value_or({}).empty()) continue;
    ++told;
    if (node.memory_bytes.value() == 0)
      all.push_back(warn(fmt::format("NUMA node {} has cores and no memory: all it uses is far", node.node),
                         "fill that socket's memory slots"));
  }
  if (told == 0) return {skip("no NUMA node reported its memory")};
  if (all.empty()) all.push_back(pass(fmt::format("{}, each with memory", counted(told, "NUMA node"))));
  return all;
}

Diagnoses check_cores(const Inventory& inventory, const HostFacts& facts) {
  if (gpus(inventory).empty()) return {no_gpu(inventory)};
  if (!facts.cores.has_value()) return {skip_for(facts.cores)};
  const auto& allowed = facts.cores.value();
  return over_gpus(inventory, "cores near each are open to this process", [&](const Device& device) {
    const std::vector<int> near = device.cores.value_or({});
    if (near.empty())
      return device.cores.has_value() ? skip("no GPU reported its nearest cores") : skip_for(device.cores);
    if (std::ranges::any_of(near, [&](int core) { return std::ranges::count(allowed, core) > 0; })) return pass("");
    return warn(
        fmt::format("this process may run on cores {} alone, all far from {}", index_ranges(allowed), called(device)),
        fmt::format("start it with cores near the GPU: taskset -c {}, or ask the scheduler for them",
                    index_ranges(near)));
  });
}

}  // namespace remuda::doctor
