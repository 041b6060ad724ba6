#include "cli/see/topo.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "base/file.h"
#include "base/json.h"
#include "cli/machine.h"
#include "cli/see/topo_plan.h"
#include "cli/subcommands.h"
#include "topology/graph.h"
#include "topology/json.h"
#include "topology/matrix.h"
#include "topology/svg.h"
#include "topology/text.h"

namespace remuda::cli {
namespace {

constexpr size_t kMostDevices = 512;  // the matrix grows with the square

struct TopoFlags {
  MachineFlags machine;
  bool json = false;
  std::string svg;
  std::vector<std::string> set;
  PlanFlags plan;
};

std::string machine_text(const Inventory& inventory) {
  const topology::Matrix matrix = topology::make_matrix(inventory);
  if (matrix.devices.empty()) return "no devices\n";
  std::string text = topology_text(inventory, matrix);
  if (matrix.devices.size() > 1) {
    const char* kind = matrix.devices.front()->kind == DeviceKind::gpu ? "GPUs" : "CPU devices";
    text += "\n" + ring_text(matrix, fmt::format("all {} {}", matrix.devices.size(), kind));
  }
  return text;
}

Result<std::string> output(const TopoFlags& flags, const Inventory& inventory) {
  if (!flags.plan.collective.empty()) return plan_output(inventory, flags.plan, flags.json);
  if (!flags.set.empty()) return set_text(inventory, flags.set);
  if (!flags.svg.empty()) return topology::topology_svg(topology::make_graph(inventory));
  if (const size_t devices = topology::linked_devices(inventory).size(); devices > kMostDevices)
    return usage_error(fmt::format("the matrix has room for {} devices, this machine has {}", kMostDevices, devices));
  return flags.json ? to_pretty(to_json(topology::make_matrix(inventory))) : machine_text(inventory);
}

Result<int> topo(const TopoFlags& flags) {
  const bool to_file = !flags.svg.empty() && flags.svg != "-";
  REMUDA_ASSIGN(const Inventory inventory, read_machine(flags.machine));
  REMUDA_ASSIGN(const std::string text, output(flags, inventory));
  if (!to_file) {
    fmt::print("{}", text);
    return 0;
  }
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(flags.svg));
  REMUDA_TRY(file.commit(text));
  return 0;
}

constexpr const char* kTopoExamples =
    "Words such as NV2 or SYS name what joins a pair; the legend explains those that occur. GB/s are assumed from "
    "them,\n"
    "or measured by `remuda bench links`.\n\n"
    "Examples:\n"
    "  remuda topo                               the matrix, and how fast each pair is\n"
    "  remuda topo --set gpu:0,gpu:2,gpu:3       how fast these three can work together\n"
    "  remuda topo --plan allreduce              how all GPUs best add up what each has\n"
    "  remuda topo --plan allreduce --devices gpu:0,gpu:2,gpu:3 --bytes 100MiB\n"
    "  remuda topo --svg machine.svg             a picture of the machine\n"
    "  remuda topo --json --machine saved.json   a recorded machine, for programs\n";

}  // namespace

Result<std::string> set_text(const Inventory& inventory, const std::vector<std::string>& names) {
  std::vector<const Device*> devices;
  std::string who;
  for (const std::string& name : names) {
    REMUDA_ASSIGN(const Device* device, inventory.resolve(name));
    if (std::find(devices.begin(), devices.end(), device) != devices.end())
      return usage_error(fmt::format("--set names {} twice", device->label()));
    devices.push_back(device);
    who += (who.empty() ? "" : " ") + device->label();
  }
  const topology::Matrix matrix = topology::make_matrix(inventory, std::move(devices));
  return ring_text(matrix, who) + ring_order_text(matrix) + tree_text(matrix, who);
}

void add_topo(Program& program) {
  auto flags = std::make_shared<TopoFlags>();
  CLI::App& command =
      program.add("topo", "Show how the devices of this machine are joined", [flags] { return topo(*flags); });
  add_machine_options(command, flags->machine);
  CLI::Option* json = command.add_flag("--json", flags->json, "Print the matrix, or the plan, as JSON");
  CLI::Option* svg = command.add_option("--svg", flags->svg, "Draw the machine into this file; - is standard output")
                         ->type_name("FILE");
  CLI::Option* set =
      command.add_option("--set", flags->set, "Ring and tree bottleneck of these devices, as in gpu:0,gpu:1")
          ->type_name("DEVICES");
  svg->type_name("FILE")->excludes(json);
  set->type_name("DEVICES")->delimiter(',')->excludes(json)->excludes(svg);
  for (CLI::Option* option : add_plan_options(command, flags->plan)) option->excludes(svg)->excludes(set);
  command.footer(kTopoExamples);
}

}  // namespace remuda::cli
