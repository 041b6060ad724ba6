#include "probe/pci/numa.h"

#include <fmt/format.h>
#include <sstream>

#include "base/number.h"
#include "probe/sysfs.h"

namespace remuda::probe::pci {
namespace {

Missing not_stated(const std::string& path, const char* what) {
  return {MissingReason::unsupported, fmt::format("{} holds no {}", path, what)};
}

/// "Node 0 MemTotal:       19622092 kB", its first line.
Reading<int64_t> read_memory(const std::string& path) {
  constexpr int64_t kKiB = 1024;
  const auto text = sysfs::read(path);
  if (!text.has_value()) return text.missing();
  std::istringstream words(text.value());
  for (std::string word; words >> word;) {
    if (word != "MemTotal:") continue;
    words >> word;
    const auto size = parse_number<int64_t>(word);
    if (size && *size >= 0 && *size <= std::numeric_limits<int64_t>::max() / kKiB) return *size * kKiB;
    break;
  }
  return not_stated(path, "total of its memory");
}

Reading<std::vector<int>> read_distances(const std::string& path) {
  const auto text = sysfs::read(path);
  if (!text.has_value()) return text.missing();
  std::istringstream words(text.value());
  std::vector<int> distances;
  for (int distance = 0; words >> distance;) distances.push_back(distance);
  if (!words.eof() || distances.empty()) return not_stated(path, "distances");
  return distances;
}

}  // namespace

std::vector<NumaNode> find_numa_nodes(const std::string& sysfs) {
  const std::string all = sysfs + "/devices/system/node";
  std::vector<NumaNode> nodes;
  for (const int number : sysfs::numbered(all, "node")) {
    const std::string folder = fmt::format("{}/node{}", all, number);
    nodes.push_back({number, sysfs::read_index_list(folder + "/cpulist"), read_memory(folder + "/meminfo"),
                     read_distances(folder + "/distance")});
  }
  return nodes;
}

}  // namespace remuda::probe::pci
