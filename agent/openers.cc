#include "agent/openers.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/exempt_units.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "confine/device_nodes.h"
#include "process/user_name.h"

namespace remuda::agent {
namespace {

namespace fs = std::filesystem;

/// What `key` of /proc/PID/status says: "Uid:\t1000\t1000...", "Name:\tsh".
std::string status_field(const std::string& status, const std::string& key) {
  for (const std::string& line : split(status, '\n'))
    if (line.starts_with(key + ":\t")) return split(line.substr(key.size() + 2), '\t').front();
  return "";
}

std::set<confine::DeviceNode> opened_by(const std::string& process) {
  std::set<confine::DeviceNode> opened;
  std::error_code error;
  for (fs::directory_iterator entry(process + "/fd", error), end; !error && entry != end; entry.increment(error)) {
    struct stat info{};
    if (::stat(entry->path().c_str(), &info) == 0 && S_ISCHR(info.st_mode))
      opened.insert({major(info.st_rdev), minor(info.st_rdev)});
  }
  return opened;
}

void add_to(Device& device, const Process& opener) {
  std::vector<Process> processes = device.status.processes.value_or({});
  if (std::ranges::find(processes, opener.pid, &Process::pid) != processes.end()) return;
  processes.push_back(opener);
  device.status.processes = std::move(processes);
}

}  // namespace

void add_openers(Inventory& inventory, const std::vector<std::string>& exempt, const std::string& sysfs,
                 const std::string& proc) {
  std::map<confine::DeviceNode, std::vector<std::string>> owners;
  for (const confine::DeviceNodes& device : confine::all_nodes(inventory, sysfs))
    for (const confine::DeviceNode& node : device.nodes) owners[node].push_back(device.device);
  std::error_code error;
  for (fs::directory_iterator entry(proc, error), end; !error && entry != end; entry.increment(error)) {
    const std::string folder = entry->path().string();
    const auto pid = parse_number<int>(entry->path().filename().string());
    const std::string status = pid ? read_text(folder + "/status").value_or("") : "";
    const auto uid = parse_number<int>(status_field(status, "Uid"));
    if (!uid || *uid == 0) continue;
    Process opener;
    opener.pid = *pid;
    std::set<std::string> devices;
    for (const confine::DeviceNode& node : opened_by(folder))
      if (const auto owner = owners.find(node); owner != owners.end())
        devices.insert(owner->second.begin(), owner->second.end());
    if (devices.empty() || is_exempt(exempt, read_text(folder + "/cgroup").value_or(""))) continue;
    opener.user = process::user_name(*uid);
    opener.command = printable(status_field(status, "Name"));
    for (Device& device : inventory.devices)
      if (devices.contains(device.id)) add_to(device, opener);
  }
}

}  // namespace remuda::agent
