#include "cli/see/topo_plan.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.h"
#include "base/quantity.h"
#include "base/text.h"
#include "route/json.h"
#include "route/network.h"
#include "route/plan.h"
#include "route/text.h"
#include "topology/matrix.h"

namespace remuda::cli {
namespace {

constexpr double kMostBytes = 1e15;
constexpr size_t kMostLinked = 512;  // devices of a machine, whose graph has all their pairs

Result<std::vector<const Device*>> devices_of_plan(const Inventory& inventory, const std::vector<std::string>& names) {
  if (names.empty()) return topology::linked_devices(inventory);
  std::vector<const Device*> devices;
  for (const std::string& name : names) {
    REMUDA_ASSIGN(const Device* device, inventory.resolve(name));
    if (std::ranges::find(devices, device) != devices.end())
      return usage_error(fmt::format("--devices names {} twice", device->label()));
    devices.push_back(device);
  }
  return devices;
}

Result<double> bytes_of_plan(const std::string& text) {
  const auto bytes = parse_amount(text);
  if (!bytes || *bytes < 1 || *bytes > kMostBytes)
    return usage_error(fmt::format("--bytes: '{}' is no size of a buffer; write 100MiB", printable(text)));
  return *bytes;
}

}  // namespace

std::vector<CLI::Option*> add_plan_options(CLI::App& command, PlanFlags& flags) {
  CLI::Option* plan = command.add_option("--plan", flags.collective, "How devices best do a collective operation")
                          ->type_name("allreduce")
                          ->check(CLI::IsMember({"allreduce"}));
  CLI::Option* devices =
      command.add_option("--devices", flags.devices, "With --plan: these, in this order, as in gpu:0,gpu:1")
          ->type_name("DEVICES")
          ->delimiter(',')
          ->needs(plan);
  CLI::Option* bytes =
      command.add_option("--bytes", flags.bytes, "With --plan: what each device has; 4MiB unless given")
          ->type_name("SIZE")
          ->needs(plan);
  return {plan, devices, bytes};
}

Result<std::string> plan_output(const Inventory& inventory, const PlanFlags& flags, bool json) {
  REMUDA_ASSIGN(const double bytes, bytes_of_plan(flags.bytes));
  REMUDA_ASSIGN(const auto devices, devices_of_plan(inventory, flags.devices));
  if (devices.size() > route::kMostRanks)  // said before a network of so many is made
    return usage_error(fmt::format("--plan has room for {} devices, these are {}", route::kMostRanks, devices.size()));
  if (const size_t linked = topology::linked_devices(inventory).size(); linked > kMostLinked)
    return usage_error(fmt::format("--plan has room for machines of {} devices, this one has {}", kMostLinked, linked));
  REMUDA_ASSIGN(const route::Plan plan, route::plan_all_reduce(route::network_of(inventory, devices)));
  return json ? to_pretty(to_json(plan, bytes)) : plan_text(plan, bytes);
}

}  // namespace remuda::cli
