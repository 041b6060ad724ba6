#include "confine/host_limits.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "base/quantity.h"
#include "base/text.h"

namespace remuda::confine {
namespace {

constexpr int kPeriod_us = 100000;  ///< the kernel's default

/// Of the kernel, as each version names its files.
struct Controller {
  const char *name, *file, *file_of_1;
};
constexpr Controller kCpuset{"cpuset", "cpuset.cpus", "cpuset.cpus"}, kCpu{"cpu", "cpu.max", "cpu.cfs_quota_us"},
    kMemory{"memory", "memory.max", "memory.limit_in_bytes"};

bool exists(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

/// Without an error, or with errno.
int write_file(const std::string& path, const std::string& text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return errno;
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

std::string parent_of(const std::string& folder) { return folder.substr(0, folder.rfind('/')); }
std::string name_of(const std::string& folder) { return folder.substr(folder.rfind('/') + 1); }

/// Gives the cgroups below this one of version 2 the controller. The error is a clause.
Result<void> hand_down(const std::string& folder, const char* controller) {
  const auto has = [&](const char* file) {
    const auto words = split(read_text(folder + file).value_or(""), ' ');
    return std::ranges::any_of(words, [&](const std::string& word) { return split(word, '\n')[0] == controller; });
  };
  if (has("/cgroup.subtree_control")) return {};
  if (!has("/cgroup.controllers")) return failed(fmt::format("{} has no controller {}", folder, controller));
  const int error = write_file(folder + "/cgroup.subtree_control", fmt::format("+{}", controller));
  if (error == 0) return {};
  if (error == EBUSY) return failed(fmt::format("{} has processes, so the kernel limits no cgroup below it", folder));
  return failed(fmt::format("cannot hand down the controller {} in {}: {}", controller, folder, errno_text(error)));
}

std::optional<CgroupPlace> place_of_1(const Controller& controller) {
  for (CgroupPlace& place : own_cgroup_places(controller.name))
    if (place.version == 1) return std::move(place);
  return std::nullopt;
}

/// Sets limits one by one, and remembers the first obstacle.
class Setter {
 public:
  explicit Setter(const JobCgroup& cgroup) : cgroup_(cgroup) {}

  bool set(const Controller& controller, const std::string& text, const std::string& text_of_1) {
    const auto folder = folder_for(controller);
    if (!folder) return note(folder.error().message);
    const bool is_of_2 = cgroup_.version() == 2 && *folder == cgroup_.folder();
    const std::string path = *folder + "/" + (is_of_2 ? controller.file : controller.file_of_1);
    const int error = write_file(path, is_of_2 ? text : text_of_1);
    return error == 0 || note(fmt::format("cannot write {}: {}", path, errno_text(error)));
  }

  /// The folder in which the job has the controller; made for that where it is another tree's.
  Result<std::string> folder_for(const Controller& controller) {
    if (cgroup_.version() == 2) {
      const auto handed = hand_down(parent_of(cgroup_.folder()), controller.name);
      if (handed && exists(cgroup_.folder() + "/" + controller.file)) return cgroup_.folder();
      if (!place_of_1(controller))
        return handed ? failed("the kernel gives it no limits") : failed(handed.error().message);
    }
    const auto place = place_of_1(controller);
    if (!place) return failed(fmt::format("there is no tree of cgroups with the controller {}", controller.name));
    if (parent_of(cgroup_.folder()) == place->own) return cgroup_.folder();  // a tree may have several controllers
    for (const JobCgroup& one : limits_.further)
      if (parent_of(one.folder()) == place->own) return one.folder();
    REMUDA_ASSIGN(JobCgroup made, JobCgroup::make(*place, name_of(cgroup_.folder())));
    std::string folder = made.folder();
    if (exists(folder + "/cpuset.mems")) {  // without memory nodes it takes no process
      write_file(folder + "/cpuset.mems", read_text(place->own + "/cpuset.effective_mems").value_or(""));
      write_file(folder + "/cpuset.cpus", read_text(place->own + "/cpuset.effective_cpus").value_or(""));
    }
    limits_.further.push_back(std::move(made));
    return folder;
  }

  /// Else a job that wants more of the host's memory would get it there. Without swap there are no such files.
  void keep_from_swap() {
    const auto folder = folder_for(kMemory);
    if (!folder) return;
    (void)write_file(*folder + "/memory.swap.max", "0");
    const auto limit = read_text(*folder + "/memory.limit_in_bytes");
    if (limit) (void)write_file(*folder + "/memory.memsw.limit_in_bytes", *limit);
  }

  HostLimits take() { return std::move(limits_); }
  HostLimited& how() { return limits_.how; }

 private:
  bool note(const std::string& clause) {
    if (limits_.how.obstacle.empty()) limits_.how.obstacle = clause;
    return false;
  }
  const JobCgroup& cgroup_;
  HostLimits limits_;
};

void limit_cores(const std::vector<int>& cores, Setter& setter) {
  const std::string list = index_ranges(cores);
  const int64_t quota_us = static_cast<int64_t>(cores.size()) * kPeriod_us;
  if (setter.set(kCpuset, list, list))
    setter.how().cores = "cpuset";
  else if (setter.set(kCpu, fmt::format("{} {}", quota_us, kPeriod_us), std::to_string(quota_us)))
    setter.how().cores = "quota";
}

/// The number behind a word in lines of words and numbers.
int64_t number_after(const std::string& text, const std::string& word) {
  for (const std::string& line : split(text, '\n'))
    if (line.starts_with(word + ' ')) return parse_number<int64_t>(line.substr(word.size() + 1)).value_or(0);
  return 0;
}

std::optional<int64_t> number_in(const std::string& path) {
  const auto text = read_text(path);
  return text ? parse_number<int64_t>(split(*text, '\n')[0]) : std::nullopt;
}

/// For root, a cgroup without processes, from which all of these get the controllers; otherwise the place itself.
CgroupPlace place_for_jobs(CgroupPlace place) {
  constexpr const char* kName = "/remuda";
  const std::string folder = place.mount + kName;
  if (place.version != 2 || ::geteuid() != 0 || place.own == folder || place.own.starts_with(folder + "/"))
    return place;
  for (const Controller& controller : {kMemory, kCpu, kCpuset}) (void)hand_down(place.mount, controller.name);
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return place;
  ::chmod(folder.c_str(), 0755);  // whatever the umask: users look at the cgroups of their jobs
  if (!hand_down(folder, kMemory.name)) {
    ::rmdir(folder.c_str());
    return place;
  }
  place.own = folder;
  return place;
}

}  // namespace

HostLimits limit_host(const JobCgroup& cgroup, const HostShare& share) {
  Setter setter(cgroup);
  if (!share.cores.empty()) limit_cores(share.cores, setter);
  if (!setter.how().cores.empty()) setter.how().obstacle.clear();
  const std::string bytes = std::to_string(share.memory_bytes);
  if (share.memory_bytes > 0) {
    setter.how().memory = setter.set(kMemory, bytes, bytes);
    setter.keep_from_swap();
  } else {
    (void)setter.folder_for(kMemory);
  }
  return setter.take();
}

std::vector<CgroupPlace> job_places() {
  std::vector<CgroupPlace> places;
  for (CgroupPlace& place : own_cgroup_places()) places.push_back(place_for_jobs(std::move(place)));
  return places;
}

MemoryUse memory_use(const std::string& cgroup, const std::vector<std::string>& of_further) {
  const auto missing = [](const char* why) { return Missing{MissingReason::unsupported, why}; };
  if (cgroup.empty()) return {missing("no cgroup holds the job"), 0};
  std::vector<std::string> folders{cgroup};
  folders.insert(folders.end(), of_further.begin(), of_further.end());
  for (const std::string& folder : folders) {
    if (const auto peak = number_in(folder + "/memory.peak"))
      return {*peak, number_after(read_text(folder + "/memory.events").value_or(""), "oom_kill")};
    if (const auto peak = number_in(folder + "/memory.max_usage_in_bytes"))
      return {*peak, number_after(read_text(folder + "/memory.oom_control").value_or(""), "oom_kill")};
    if (exists(folder + "/memory.current"))
      return {missing("the kernel, older than Linux 5.19, does not keep it"),
              number_after(read_text(folder + "/memory.events").value_or(""), "oom_kill")};
  }
  return {missing("the job's cgroup does not count memory"), 0};
}

std::string kills_text(const MemoryUse& use, int64_t limit_bytes) {
  if (use.kills == 0) return "";
  const std::string who = use.kills == 1 ? "a process of it" : fmt::format("{} of its processes", use.kills);
  return fmt::format("the kernel has ended {}, {}", who,
                     limit_bytes > 0
                         ? fmt::format("as more was wanted than its {} of the host", amount_text(limit_bytes))
                         : "as the host had no more memory");
}

std::vector<std::string> further_places() {
  std::vector<std::string> folders;
  for (const Controller& controller : {kCpuset, kCpu, kMemory})
    if (const auto place = place_of_1(controller); place && std::ranges::find(folders, place->own) == folders.end())
      folders.push_back(place->own);
  return folders;
}

}  // namespace remuda::confine
