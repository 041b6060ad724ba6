#include "confine/confinement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "confine/device_filter.h"

namespace remuda::confine {
namespace {

constexpr const char* kRecorded = "this is a recorded machine";

/// Sets a device filter on the cgroup, and records in `how` what is in force.
void filter_devices(const JobCgroup& cgroup, const std::optional<Withheld>& withheld, Confined& how) {
  if (!withheld) {
    how.obstacle = kRecorded;
    return;
  }
  if (!withheld->nodes.empty()) {
    const auto denied = deny_devices(cgroup.fd(), cgroup.version(), withheld->nodes);
    if (!denied) {
      how.obstacle = denied.error().message;
      return;
    }
    how.files_denied = static_cast<int>(withheld->nodes.size());
  }
  how.devices = withheld->unknown.empty();
  how.obstacle = how.devices ? ""
                             : fmt::format("the driver does not report the device files of {}",
                                           fmt::join(withheld->unknown, ", "));
}

struct Made {
  std::optional<JobCgroup> cgroup;
  Confined how;
};

/// In the first tree that accepts both cgroup and filter, else in the first that accepts the cgroup.
Made make_in(const std::vector<CgroupPlace>& places, const std::string& name, const std::optional<Withheld>& withheld) {
  Made best{{}, {.obstacle = "no cgroups here"}};
  for (const CgroupPlace& place : places) {
    auto cgroup = JobCgroup::make(place, name);
    if (!cgroup) {
      if (!best.cgroup && &place == &places.front()) best.how.obstacle = cgroup.error().message;
      continue;
    }
    Confined how{.cgroup = place.version};
    filter_devices(*cgroup, withheld, how);
    const bool is_all = how.devices || !withheld;
    if (!best.cgroup || is_all) {
      best.cgroup.reset();
      best.cgroup.emplace(std::move(*cgroup));
      best.how = std::move(how);
    }
    if (is_all) break;
  }
  return best;
}

}  // namespace

std::string Confined::sentence() const {
  const std::string held = fmt::format("processes are held by a {}", cgroup > 0 ? "cgroup" : "process group");
  if (devices) return held + "; devices that were not granted cannot be opened";
  return fmt::format("{}; devices that were not granted are hidden by variables only: {}", held, obstacle);
}

Confinement Confinement::make(const std::string& pool, int64_t job, const std::optional<Withheld>& withheld,
                              const HostShare& share) {
  const std::string name = cgroup_name(pool, job);
  if (!name.empty()) return make_named(name, withheld, share);
  Confinement confinement;
  confinement.how_.obstacle = "the pool's folder is gone";
  return confinement;
}

Confinement Confinement::make_named(const std::string& name, const std::optional<Withheld>& withheld,
                                    const HostShare& share) {
  Confinement confinement;
  Made made = make_in(job_places(), name, withheld);
  confinement.how_ = std::move(made.how);
  if (!made.cgroup) {
    confinement.how_.host.obstacle = "there is no cgroup for the job: " + confinement.how_.obstacle;
    return confinement;
  }
  confinement.cgroup_.emplace(std::move(*made.cgroup));
  HostLimits limits = limit_host(*confinement.cgroup_, withheld ? share : HostShare{});
  confinement.how_.host = std::move(limits.how);
  if (!withheld) confinement.how_.host.obstacle = kRecorded;
  confinement.further_ = std::move(limits.further);
  return confinement;
}

std::vector<int> Confinement::further() const {
  std::vector<int> open;
  for (const JobCgroup& one : further_) open.push_back(one.fd());
  return open;
}

std::vector<std::string> Confinement::further_folders() const {
  std::vector<std::string> folders;
  for (const JobCgroup& one : further_) folders.push_back(one.folder());
  return folders;
}

void Confinement::release() {
  if (cgroup_) cgroup_->release();
  for (JobCgroup& one : further_) one.release();
}

void Confinement::kill() const {
  if (cgroup_) kill_cgroup(cgroup_->folder());
}

Confined try_confinement() {
  constexpr DeviceNode kNobodys{0, 0};  // no device has major 0
  return make_in(job_places(), fmt::format("remuda-trial-{}", ::getpid()), Withheld{{kNobodys}, {}}).how;
}

}  // namespace remuda::confine
