#include "agent/openers.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "agent/exempt_units.h"
#include "base/file.h"
#include "base/number.h"
#include "confine/device_nodes.h"
#include "confine/open_nodes.h"
#include "process/status.h"
#include "process/user_name.h"

namespace remuda::agent {
namespace {

namespace fs = std::filesystem;

/// Of all users together: several of them do not delay grants by more than a second.
constexpr size_t kMostLooksAtAll = 10 * confine::kMostLooks;

struct Candidate {
  int pid = 0;
  std::string folder;
  process::ProcessStatus status;
};

/// The processes of users, those with small tables of descriptors first: who has large ones hides no process of others.
std::vector<Candidate> candidates(const std::string& proc) {
  std::vector<Candidate> found;
  std::error_code error;
  for (fs::directory_iterator entry(proc, error), end; !error && entry != end; entry.increment(error)) {
    const std::string folder = entry->path().string();
    const auto pid = parse_number<int>(entry->path().filename().string());
    if (!pid) continue;
    process::ProcessStatus status = process::parse_status(read_text(folder + "/status").value_or(""));
    if (status.users.empty() || status.users.front() == 0) continue;
    found.push_back({*pid, folder, std::move(status)});
  }
  std::ranges::stable_sort(found, {}, [](const Candidate& one) { return one.status.descriptor_slots; });
  return found;
}

void add_to(Device& device, const Process& opener) {
  std::vector<Process> processes = device.status.processes.value_or({});
  if (std::ranges::find(processes, opener.pid, &Process::pid) != processes.end()) return;
  processes.push_back(opener);
  device.status.processes = std::move(processes);
}

}  // namespace

void add_openers(Inventory& inventory, const std::vector<std::string>& exempt, const std::string& sysfs,
                 const std::string& proc, Bearers bearers) {
  std::map<confine::DeviceNode, std::vector<std::string>> owners;
  for (const confine::DeviceNodes& device : confine::all_nodes(inventory, sysfs))
    for (const confine::DeviceNode& node : device.nodes) owners[node].push_back(device.device);
  std::vector<confine::DeviceNode> nodes;
  for (const auto& [node, _] : owners) nodes.push_back(node);
  size_t left = kMostLooksAtAll;
  std::map<std::string, size_t> left_of_user;
  for (const Candidate& one : candidates(proc)) {
    const std::string cgroups = read_text(one.folder + "/cgroup").value_or("");
    const std::string bearer = bearers.of(one.status.users.front(), slice_owner(cgroups));
    size_t& left_of_this = left_of_user.try_emplace(bearer, confine::kMostLooks).first->second;
    const size_t before = std::min(left, left_of_this);
    size_t looks = before;
    const std::set<confine::DeviceNode> open = confine::open_nodes(one.folder, nodes, looks);
    left -= before - looks;
    left_of_this -= before - looks;
    if (open.empty() || is_exempt(exempt, cgroups)) continue;
    Process opener;
    opener.pid = one.pid;
    opener.user = process::user_name(one.status.users.front());
    opener.command = one.status.name;
    for (Device& device : inventory.devices)
      if (std::ranges::any_of(open, [&](const auto& node) {
            return std::ranges::find(owners.at(node), device.id) != owners.at(node).end();
          }))
        add_to(device, opener);
  }
}

}  // namespace remuda::agent
