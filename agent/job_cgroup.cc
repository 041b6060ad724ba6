#include "agent/job_cgroup.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "confine/cgroup.h"
#include "confine/cgroup_place.h"
#include "confine/confinement.h"
#include "process/tree.h"

namespace remuda::agent {
namespace {

namespace fs = std::filesystem;

std::string prefix_of(const std::string& pool) { return fmt::format("remuda-{}-", confine::pool_identity(pool)); }

bool is_taken(const std::string& name) {
  return std::ranges::any_of(confine::job_places(), [&](const confine::CgroupPlace& place) {
    struct stat info{};
    return ::stat((place.own + "/" + name).c_str(), &info) == 0;
  });
}

std::string free_name(const std::string& pool, int64_t job) {
  std::string name = fmt::format("{}{}", prefix_of(pool), job);
  for (int turn = 2; is_taken(name); ++turn) name = fmt::format("{}{}-{}", prefix_of(pool), job, turn);
  return name;
}

/// Stops all processes of a cgroup of version 2 where they are, so that none is born while the others are killed.
class Frozen {
 public:
  explicit Frozen(const std::string& cgroup)
      : file_(::open((cgroup + "/cgroup.freeze").c_str(), O_WRONLY | O_CLOEXEC)) {
    set("1");
  }
  Frozen(const Frozen&) = delete;
  ~Frozen() { set("0"); }

 private:
  void set(const char* state) const {
    if (file_) (void)write_all(file_.get(), state, "cgroup.freeze");
  }
  const Fd file_;
};

/// Of version 2, where the user can make no more than a few cgroups in it, and cgroup.procs stays root's.
void give_to(int uid, const std::string& cgroup) {
  constexpr const char* kMostBelow = "16";
  const Fd most(::open((cgroup + "/cgroup.max.descendants").c_str(), O_WRONLY | O_CLOEXEC));
  if (most && write_all(most.get(), kMostBelow, cgroup) && ::chmod(cgroup.c_str(), 0755) == 0)
    (void)!::chown(cgroup.c_str(), static_cast<uid_t>(uid), static_cast<gid_t>(-1));
}

}  // namespace

/// Of what the user has made in it he is the owner still, so the kernel is told that nothing more is made there.
void take_back(const std::string& cgroup) {
  if (::geteuid() != 0) return;
  const Fd most(::open((cgroup + "/cgroup.max.descendants").c_str(), O_WRONLY | O_CLOEXEC));
  if (most) (void)write_all(most.get(), "0", cgroup);
  (void)!::chown(cgroup.c_str(), 0, static_cast<gid_t>(-1));
}

std::vector<std::string> JobCgroup::all() const {
  std::vector<std::string> folders = further;
  if (!folder.empty()) folders.push_back(folder);
  return folders;
}

JobCgroup make_job_cgroup(const std::string& pool, int64_t job, int uid,
                          const std::optional<confine::Withheld>& withheld, const confine::HostShare& share) {
  confine::Confinement made = confine::Confinement::make_named(free_name(pool, job), withheld, share);
  JobCgroup cgroup{.folder = made.folder(),
                   .devices_enforced = made.how().devices,
                   .files_denied = made.how().files_denied,
                   .obstacle = made.how().obstacle,
                   .further = made.further_folders(),
                   .host = made.how().host};
  made.release();
  if (!cgroup.folder.empty() && ::geteuid() == 0) give_to(uid, cgroup.folder);
  return cgroup;
}

std::string memberships_of(const process::ProcessId& process) {
  const auto memberships = read_text(fmt::format("/proc/{}/cgroup", process.pid));
  return memberships && is_alive(process) ? *memberships : "";
}

bool is_member(const std::string& cgroup, const std::string& memberships) {
  const std::string name = cgroup.substr(cgroup.rfind('/'));
  return memberships.find(name + '\n') != std::string::npos || memberships.find(name + '/') != std::string::npos;
}

void kill_members(const std::string& cgroup, const std::optional<process::ProcessId>& but, Pace pace) {
  constexpr size_t kPiece = 100;
  std::vector<int> pids = confine::cgroup_pids(cgroup);
  const bool is_piece = pace == Pace::in_pieces && pids.size() > kPiece;
  if (!is_piece && !but && confine::kill_cgroup(cgroup)) return;
  std::optional<Frozen> frozen;
  if (!is_piece) {
    frozen.emplace(cgroup);
    pids = confine::cgroup_pids(cgroup);  // those that were born meanwhile, too: from here on none is
  }
  for (const int pid : std::span(pids).first(is_piece ? kPiece : pids.size())) {
    const auto member = process::process_id(pid);
    if (member && member != but) process::send_signal(*member, SIGKILL);
  }
}

std::vector<std::string> job_cgroups(const std::string& pool) {
  std::vector<std::string> found;
  const std::string prefix = prefix_of(pool);
  const auto look_in = [&](const std::string& folder) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path().string());
  };
  std::set<std::string> places;
  for (const confine::CgroupPlace& place : confine::job_places()) places.insert(place.own);
  for (const confine::CgroupPlace& place : confine::own_cgroup_places()) places.insert(place.own);  // of an older agent
  for (const std::string& folder : confine::further_places()) places.insert(folder);
  for (const std::string& folder : places) look_in(folder);
  return found;
}

std::vector<std::string> further_cgroups_of(const std::string& cgroup) {
  std::vector<std::string> found;
  const std::string name = cgroup.substr(cgroup.rfind('/'));
  for (const std::string& folder : confine::further_places())
    if (struct stat info{}; folder + name != cgroup && ::stat((folder + name).c_str(), &info) == 0)
      found.push_back(folder + name);
  return found;
}

std::vector<confine::DeviceNode> nodes_of(const Inventory& inventory, const std::vector<std::string>& devices) {
  std::set<std::string> needed(devices.begin(), devices.end());
  for (const std::string& id : devices)
    if (const Device* device = inventory.find(id); device && !device->parent.empty()) needed.insert(device->parent);
  std::set<confine::DeviceNode> nodes;
  for (const confine::DeviceNodes& device : confine::all_nodes(inventory))
    if (needed.contains(device.device)) nodes.insert(device.nodes.begin(), device.nodes.end());
  return {nodes.begin(), nodes.end()};
}

}  // namespace remuda::agent
