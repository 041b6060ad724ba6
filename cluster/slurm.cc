#include "cluster/slurm.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "confine/device_nodes.h"
#include "process/stat.h"
#include "process/status.h"
#include "process/tree.h"

namespace remuda::cluster {
namespace {

namespace fs = std::filesystem;

constexpr double kAskEvery_s = 5, kFilesEvery_s = 60, kPatience_s = 5;
constexpr size_t kMostJobs = 64;  ///< asked for one by one

std::optional<confine::DeviceNode> node_of(const std::string& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0 || !S_ISCHR(info.st_mode)) return std::nullopt;
  return confine::DeviceNode{major(info.st_rdev), minor(info.st_rdev)};
}

/// The device whose file this is.
const Device* device_of(const std::string& file, const Inventory& inventory,
                        const std::vector<confine::DeviceNodes>& nodes) {
  const auto node = node_of(file);
  for (const confine::DeviceNodes& one : nodes)
    if (node && std::ranges::find(one.nodes, *node) != one.nodes.end()) return inventory.find(one.device);
  return nullptr;
}

}  // namespace

/// Those that have a process here, and those that Slurm names; the second has jobs without one, too.
std::vector<int64_t> Slurm::jobs_here() const {
  std::set<int64_t> jobs;
  std::error_code error;
  for (fs::directory_iterator entry(options_.proc, error), end; !error && entry != end; entry.increment(error)) {
    if (!parse_number<int>(entry->path().filename().string())) continue;
    for (const std::string& line : split(read_text(entry->path().string() + "/cgroup").value_or(""), '\n'))
      if (const auto job = job_of_cgroup(line)) jobs.insert(*job);
  }
  const auto listed = options_.run({"squeue", "--noheader", "--nodelist=" + options_.node,
                                    "--states=RUNNING,SUSPENDED,COMPLETING,CONFIGURING,STOPPED", "--format=%A"});
  for (const std::string& line : split(listed.value_or(""), '\n'))
    if (const auto job = parse_number<int64_t>(line.substr(0, line.find(' '))); job && *job > 0) jobs.insert(*job);
  return {jobs.begin(), jobs.end()};
}

void Slurm::ask() {
  const double now_s = clock_.now_s();
  if (!files_at_s_ || now_s - *files_at_s_ >= kFilesEvery_s) {
    files_at_s_ = now_s;
    if (const auto gres = options_.run({"slurmd", "-G"})) files_ = parse_gres_files(*gres);
  }
  if ((asked_at_s_ && now_s - *asked_at_s_ < kAskEvery_s) || (files_ && files_->empty())) return;
  asked_at_s_ = now_s;
  const auto node = options_.run({"scontrol", "show", "node", "--details", options_.node});
  if (!node) return;
  used_ = parse_used_gpus(*node);
  const std::vector<int64_t> ids = jobs_here();
  std::erase_if(jobs_, [&](const auto& job) { return std::ranges::find(ids, job.first) == ids.end(); });
  for (const int64_t id : ids) {
    if (jobs_.contains(id) || jobs_.size() >= kMostJobs) continue;
    if (const auto job = options_.run({"scontrol", "show", "job", "--details", std::to_string(id)}))
      jobs_[id] = parse_slurm_job(*job, id, options_.node);
  }
}

std::string Slurm::holder_of(int gpu) const {
  std::string holder;
  for (const auto& [id, job] : jobs_)
    if (std::ranges::find(job.gpus, gpu) != job.gpus.end())
      holder += fmt::format("{}slurm job {}{}", holder.empty() ? "" : ", ", id,
                            job.user.empty() ? "" : fmt::format(" ({})", job.user));
  const bool is_used = std::ranges::find(used_, gpu) != used_.end();
  return holder.empty() && is_used ? "a slurm job" : holder;
}

std::vector<pool::Allocation> Slurm::allocations(const Inventory& inventory) {
  if (!options_.is_here()) return {};
  ask();
  std::map<std::string, pool::Allocation> of_device;
  const auto add = [&](const Device& device, const std::string& holder) {
    of_device[device.id] = {.device = device.id, .manager = "Slurm", .holder = holder, .instead = "srun or sbatch"};
  };
  if (!files_)
    for (const Device& device : inventory.devices)
      if (device.kind != DeviceKind::cpu) add(device, "");
  const auto nodes = files_ ? confine::all_nodes(inventory, options_.sysfs) : std::vector<confine::DeviceNodes>();
  for (size_t gpu = 0; files_ && gpu < files_->size(); ++gpu)
    if (const Device* device = device_of((*files_)[gpu], inventory, nodes))
      add(*device, holder_of(static_cast<int>(gpu)));
  std::vector<pool::Allocation> allocations;
  for (auto& [_, allocation] : of_device) allocations.push_back(std::move(allocation));
  return allocations;
}

Slurm::Options slurm_here() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  const std::string host = name;
  return {.run = [](const std::vector<std::string>& argv) { return run_command(argv, kPatience_s); },
          .is_here =
              [] {
                return std::ranges::any_of(process::all_processes(), [](int pid) {
                  const auto stat = process::process_stat(pid);
                  return stat && stat->name == "slurmd" && process::sole_user_of(pid) == 0;
                });
              },
          .node = host.substr(0, host.find('.'))};
}

}  // namespace remuda::cluster
