#include "topology/testing/machines.h"

#include <algorithm>
#include <sstream>

#include "base/check.h"
#include "base/text.h"

namespace remuda::topology {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<int> range(const std::string& text) {
  const auto ends = split(text, '-');
  std::vector<int> cores;
  for (int core = std::stoi(ends.front()); core <= std::stoi(ends.back()); ++core) cores.push_back(core);
  return cores;
}

void set(Device& device, const std::string& key, const std::string& value) {
  if (key == "numa") device.numa_node = std::stoi(value);
  if (key == "cores") device.cores = range(value);
  if (key == "memory") device.memory_bytes = std::stoll(value) << 30;
  if (key == "gen") device.pcie_generation_max = std::stoi(value);
  if (key == "width") device.status.pcie_width = std::stoi(value);
  if (key == "chip") device.architecture = value;
  if (key == "model") {
    device.model = value;
    std::replace(device.model.begin(), device.model.end(), '_', ' ');
  }
}

Link link_of(const std::string& a, const std::string& b, const std::string& word) {
  Link link{.a = a, .b = b};
  if (word.starts_with("NV") || word.starts_with("XG")) {
    link.fabric = word.starts_with("NV") ? Fabric::nvlink : Fabric::xgmi;
    if (word != "XGMI") link.fabric_links = std::stoi(word.substr(2));
    return link;
  }
  link.path = from_word<Path>(word).value();
  link.fabric = Fabric::none;
  return link;
}

std::string gpu_id(size_t index) { return "GPU-" + std::to_string(index); }

struct Row {
  bool is_nic = false;
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> facts;
};

Row parse_row(const std::string& line) {
  const auto parts = split(line, '|');
  Row row{.words = words_of(parts.front())};
  row.is_nic = row.words.front() == "nic";
  if (row.is_nic) row.words.erase(row.words.begin());
  if (parts.size() > 1)
    for (const std::string& fact : words_of(parts[1])) row.facts.emplace_back(split(fact, '=')[0], split(fact, '=')[1]);
  return row;
}

void add_nic(const Row& row, Inventory& inventory) {
  Nic nic{.name = "nic" + std::to_string(inventory.nics.size())};
  for (const auto& [key, value] : row.facts) {
    if (key == "name") nic.name = value;
    if (key == "numa") nic.numa_node = std::stoi(value);
  }
  for (size_t i = 0; i < row.words.size(); ++i)
    if (row.words[i] != "?") inventory.links.push_back(link_of(gpu_id(i), nic.name, row.words[i]));
  inventory.nics.push_back(nic);
}

void add_gpu(const Row& row, Inventory& inventory) {
  const size_t index = inventory.devices.size();
  Device device{.id = gpu_id(index), .kind = DeviceKind::gpu, .index = static_cast<int>(index)};
  for (const auto& [key, value] : row.facts) set(device, key, value);
  for (size_t i = 0; i < index; ++i)
    if (row.words[i] != "?") inventory.links.push_back(link_of(gpu_id(i), gpu_id(index), row.words[i]));
  inventory.devices.push_back(device);
}

}  // namespace

Inventory test_machine(const std::string& rows) {
  Inventory inventory{.host = "host1"};
  for (const std::string& line : split(rows, '\n')) {
    if (words_of(line).empty()) continue;
    const Row row = parse_row(line);
    if (row.is_nic)
      add_nic(row, inventory);
    else
      add_gpu(row, inventory);
  }
  return inventory;
}

Inventory cube_mesh() {
  return test_machine(R"(
    X   NV1 NV1 NV2 NV2 SYS SYS SYS | cores=0-19 model=Tesla_V100-SXM2-16GB memory=16
    NV1 X   NV2 NV1 SYS NV2 SYS SYS | cores=0-19 model=Tesla_V100-SXM2-16GB memory=16
    NV1 NV2 X   NV2 SYS SYS NV1 SYS | cores=0-19 model=Tesla_V100-SXM2-16GB memory=16
    NV2 NV1 NV2 X   SYS SYS SYS NV1 | cores=0-19 model=Tesla_V100-SXM2-16GB memory=16
    NV2 SYS SYS SYS X   NV1 NV1 NV2 | cores=20-39 model=Tesla_V100-SXM2-16GB memory=16
    SYS NV2 SYS SYS NV1 X   NV2 NV1 | cores=20-39 model=Tesla_V100-SXM2-16GB memory=16
    SYS SYS NV1 SYS NV1 NV2 X   NV2 | cores=20-39 model=Tesla_V100-SXM2-16GB memory=16
    SYS SYS SYS NV1 NV2 NV1 NV2 X   | cores=20-39 model=Tesla_V100-SXM2-16GB memory=16
    nic PIX PIX PHB PHB SYS SYS SYS SYS | name=mlx5_0
    nic SYS SYS SYS SYS PIX PIX PHB PHB | name=mlx5_2
    nic PHB PHB PIX PIX SYS SYS SYS SYS | name=mlx5_1
    nic SYS SYS SYS SYS PHB PHB PIX PIX | name=mlx5_3)");
}

Inventory switched() {
  std::string rows;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) rows += i == j ? "X " : "NV18 ";
    rows += "| model=H100_80GB_HBM3 memory=80 gen=5 width=16 numa=" + std::to_string(i / 4) + "\n";
  }
  for (int nic = 0; nic < 8; ++nic) {
    rows += "nic";
    for (int gpu = 0; gpu < 8; ++gpu) rows += nic == gpu ? " PIX" : nic / 4 == gpu / 4 ? " NODE" : " SYS";
    rows += "\n";
  }
  return test_machine(rows);
}

Inventory pairs() {
  return test_machine(R"(
    X    NV12 SYS  SYS  | numa=0 model=A100_80GB_PCIe memory=80
    NV12 X    SYS  SYS  | numa=1 model=A100_80GB_PCIe memory=80
    SYS  SYS  X    NV12 | numa=2 model=A100_80GB_PCIe memory=80
    SYS  SYS  NV12 X    | numa=3 model=A100_80GB_PCIe memory=80)");
}

Inventory two_sockets() {
  Inventory inventory{.host = "host1"};
  for (int i = 0; i < 2; ++i) {
    Device cpu{.id = "cpu:" + std::to_string(i), .kind = DeviceKind::cpu, .index = i, .model = "CPU"};
    cpu.numa_node = i;
    cpu.cores = range(i == 0 ? "0-7" : "8-15");
    cpu.memory_bytes = int64_t{64} << 30;
    inventory.devices.push_back(cpu);
    inventory.numa.push_back({.node = i, .cores = cpu.cores, .memory_bytes = cpu.memory_bytes});
  }
  return inventory;
}

void measure(Inventory& inventory, const std::string& a, const std::string& b, double gbps) {
  inventory.measured_links.push_back({.a = a, .b = b, .gbps = gbps});
}

}  // namespace remuda::topology
