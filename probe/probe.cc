#include "probe/probe.h"

#include <array>
#include <climits>
#include <iterator>
#include <unistd.h>

#include "probe/cpu/probe.h"

namespace remuda {
namespace {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

}  // namespace

Result<Inventory> probe_machine(const ProbeOptions& options) {
  const std::array probes{make_cpu_probe(options.cpu_devices)};
  Inventory inventory{host_name(), {}};
  for (const auto& probe : probes) {
    if (probe->unviable()) continue;
    REMUDA_ASSIGN(std::vector<Device> devices, probe->devices());
    std::move(devices.begin(), devices.end(), std::back_inserter(inventory.devices));
  }
  return inventory;
}

}  // namespace remuda
