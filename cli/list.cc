#include "cli/list.h"

#include <fmt/format.h>
#include <memory>

#include "base/table.h"
#include "base/text.h"
#include "probe/probe.h"

namespace remuda {
namespace {

struct ListFlags {
  bool json = false;
  int cpu_devices = 0;
};

template <typename T, typename Format>
std::string cell(const Reading<T>& reading, Format format) {
  return reading.has_value() ? format(reading.value()) : reading.missing().detail;
}

Result<int> list(const ListFlags& flags) {
  REMUDA_ASSIGN(const Inventory inventory, probe_machine({.cpu_devices = flags.cpu_devices}));
  fmt::print("{}", flags.json ? to_pretty(to_json(inventory)) : inventory_table(inventory));
  return 0;
}

}  // namespace

std::string inventory_table(const Inventory& inventory) {
  Table table({"ID", "MODEL", "CORES", "NUMA", "MEMORY"});
  for (const Device& device : inventory.devices)
    table.add({device.id, device.model, index_ranges(device.cores),
               cell(device.numa_node, [](int node) { return std::to_string(node); }),
               cell(device.memory_bytes, [](int64_t bytes) { return human_bytes(static_cast<double>(bytes)); })});
  return table.text();
}

void add_list(Program& program) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App& command = program.add("list", "Show the devices of this machine", [flags] { return list(*flags); });
  command.add_flag("--json", flags->json, "Print the inventory as JSON");
  command.add_option("--cpu-devices", flags->cpu_devices, "Split the CPU into this many devices")
      ->check(CLI::Range(1, 4096));
  command.footer("A CPU device is a set of whole cores; there is one per NUMA node unless --cpu-devices is given.");
}

}  // namespace remuda
