#include "tests/nvml/machine.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <strings.h>

#include "base/file.h"

namespace remuda::tests::nvml {
namespace {

bool is_ours(const std::string& vendor) { return vendor.empty() || ::strcasecmp(vendor.c_str(), "nvidia") == 0; }

template <typename T>
void make_up(Reading<T>& reading, T value) {
  if (!reading.was_read()) reading = Reading<T>(std::move(value));
}

/// Also where the recording says that its source has no value.
void name(Reading<std::string>& reading, std::string value) {
  if (!reading.has_value() && reading.missing().reason == MissingReason::unsupported) reading = std::move(value);
}

void make_up(Device& device, int number) {
  name(device.uuid, fmt::format("GPU-00000000-0000-0000-0000-{:012}", number));
  name(device.pci, fmt::format("0000:{:02x}:00.0", 0x10 + number));
  make_up(device.memory_bytes, int64_t{24} << 30);
  make_up(device.status.memory_used_bytes, int64_t{0});
  if (device.model.empty()) device.model = "Test GPU";
}

Driver driver_of(const Inventory& inventory) {
  Driver driver;
  for (const Driver& known : inventory.drivers)
    if (is_ours(known.vendor)) driver = known;
  make_up(driver.version, std::string("550.54.15"));
  make_up(driver.library_version, "12." + driver.version.value_or("550.54.15"));
  make_up(driver.runtime_version, std::string("12.4"));
  return driver;
}

void add_instances(const Inventory& inventory, Gpu& gpu) {
  for (const Device& device : inventory.devices) {
    if (device.kind != DeviceKind::partition || device.parent != gpu.device.id) continue;
    auto instance = std::make_unique<Gpu>();
    instance->device = device;
    instance->index = static_cast<int>(gpu.instances.size());
    instance->parent = &gpu;
    instance->gpu_instance = static_cast<unsigned>(instance->index) + 1;
    instance->compute_instance = 0;
    gpu.instances.push_back(std::move(instance));
  }
}

constexpr int kSwitchesPerIsland = 6;

/// The fabric between each two GPUs, from the recording.
class Wiring {
 public:
  explicit Wiring(const Machine& machine) : machine_(machine) {}

  int size() const { return static_cast<int>(machine_.gpus().size()); }
  const std::string& pci(int gpu) const { return this->gpu(gpu).device.pci.value(); }
  const Link* link(int a, int b) const {
    const Link* link = a == b ? nullptr : machine_.link(gpu(a), gpu(b));
    return link && link->fabric.has_value() && link->fabric.value() == Fabric::nvlink ? link : nullptr;
  }
  int lanes(int a, int b) const {
    const Link* link = this->link(a, b);
    return link ? link->fabric_links.value_or(1) : 0;
  }
  int lanes_of(int a) const {
    int sum = 0;
    for (int b = 0; b < size(); ++b) sum += lanes(a, b);
    return sum;
  }
  /// The generation, as the interface numbers it: 2.2 and 3.1 have numbers of their own.
  Reading<int> version(int a, int b) const {
    static const std::map<int, int> numbers{{1, 1}, {2, 2}, {3, 4}, {4, 6}, {5, 7}, {6, 8}};
    const Reading<int>& generation = link(a, b)->fabric_version;
    if (!generation.has_value()) return generation;
    const auto number = numbers.find(generation.value());
    return number == numbers.end() ? 0 : number->second;
  }

 private:
  const Gpu& gpu(int index) const { return *machine_.gpus()[index]; }
  const Machine& machine_;
};

using Island = std::vector<int>;

void visit(const Wiring& wiring, int gpu, std::vector<bool>& seen, Island& island) {
  seen[gpu] = true;
  island.push_back(gpu);
  for (int other = 0; other < wiring.size(); ++other)
    if (!seen[other] && wiring.lanes(gpu, other) > 0) visit(wiring, other, seen, island);
}

std::vector<Island> islands_of(const Wiring& wiring) {
  std::vector<Island> islands;
  std::vector<bool> seen(wiring.size());
  for (int gpu = 0; gpu < wiring.size(); ++gpu) {
    if (seen[gpu]) continue;
    Island island;
    visit(wiring, gpu, seen, island);
    if (island.size() > 1) islands.push_back(std::move(island));
  }
  return islands;
}

bool says_switched(const Wiring& wiring, const Island& island) {
  for (const int a : island)
    for (const int b : island)
      if (const Link* link = wiring.link(a, b); link && link->fabric_switched.value_or(false)) return true;
  return false;
}

bool is_uniform(const Wiring& wiring, const Island& island) {
  for (const int a : island)
    for (const int b : island)
      if (a != b && wiring.lanes(a, b) != wiring.lanes(island[0], island[1])) return false;
  return true;
}

bool is_switched(const Wiring& wiring, const Island& island) {
  constexpr size_t kManyGpus = 6;
  if (says_switched(wiring, island)) return true;
  if (island.size() >= kManyGpus && is_uniform(wiring, island)) return true;
  return std::ranges::any_of(island, [&](int gpu) { return wiring.lanes_of(gpu) > static_cast<int>(kMaxNvlinks); });
}

std::vector<Port> to_switches(const Wiring& wiring, const Island& island, int gpu, size_t island_number) {
  std::vector<Port> ports;
  for (const int other : island) {
    const size_t lanes = wiring.lanes(gpu, other);
    while (ports.size() < lanes) {
      const size_t bus = ports.size() % kSwitchesPerIsland;
      ports.push_back({kRemoteSwitch, fmt::format("{:04x}:{:02x}:00.0", 0x10 + island_number, 0xc0 + bus),
                       wiring.version(gpu, other)});
    }
  }
  return ports;
}

std::vector<Port> to_peers(const Wiring& wiring, const Island& island, int gpu) {
  std::vector<Port> ports;
  for (const int other : island)
    for (int lane = 0; lane < wiring.lanes(gpu, other); ++lane)
      ports.push_back({kRemoteGpu, wiring.pci(other), wiring.version(gpu, other)});
  if (!ports.empty() && ports.size() < kMaxNvlinks) {
    ports.push_back(ports.back());
    ports.back().active = false;
  }
  return ports;
}

/// The ports of every GPU. GPUs that fabric links connect form an island. An island is wired through switches of its
/// own when the recording says so, when it has six GPUs or more with the same number of links between all of them, or
/// when direct wires would need more links than a GPU can have. Otherwise each pair gets its own wires, and each GPU
/// one link more that is not active, as on a board whose bridge is absent.
std::vector<std::vector<Port>> ports_of(const Machine& machine) {
  const Wiring wiring(machine);
  std::vector<std::vector<Port>> ports(wiring.size());
  const std::vector<Island> islands = islands_of(wiring);
  for (size_t number = 0; number < islands.size(); ++number) {
    const bool switched = is_switched(wiring, islands[number]);
    for (const int gpu : islands[number])
      ports[gpu] =
          switched ? to_switches(wiring, islands[number], gpu, number) : to_peers(wiring, islands[number], gpu);
  }
  return ports;
}

}  // namespace

Result<std::unique_ptr<Machine>> Machine::load(const std::string& path) {
  REMUDA_ASSIGN(const std::string text, read_text(path));
  REMUDA_ASSIGN(Inventory inventory, parse_inventory(text, path));
  return std::make_unique<Machine>(std::move(inventory));
}

Machine::Machine(Inventory inventory) : inventory_(std::move(inventory)), driver_(driver_of(inventory_)) {
  for (const Device& device : inventory_.devices) {
    if (device.kind != DeviceKind::gpu || !is_ours(device.vendor)) continue;
    auto gpu = std::make_unique<Gpu>();
    gpu->device = device;
    gpu->index = static_cast<int>(gpus_.size());
    make_up(gpu->device, gpu->index);
    add_instances(inventory_, *gpu);
    gpus_.push_back(std::move(gpu));
  }
  std::vector<std::vector<Port>> ports = ports_of(*this);
  for (size_t i = 0; i < gpus_.size(); ++i) gpus_[i]->ports = std::move(ports[i]);
}

const Link* Machine::link(const Gpu& a, const Gpu& b) const { return inventory_.link(a.device.id, b.device.id); }

bool Machine::owns(Handle handle) const {
  return std::ranges::any_of(gpus_, [&](const auto& gpu) {
    return gpu.get() == handle ||
           std::ranges::any_of(gpu->instances, [&](const auto& instance) { return instance.get() == handle; });
  });
}

}  // namespace remuda::tests::nvml
