#include "agent/sharing_daemons.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/job_cgroup.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "confine/cgroup.h"
#include "confine/host_limits.h"
#include "share/job_sharing.h"
#include "share/mps.h"
#include "share/mps_folder.h"

namespace remuda::agent {
namespace {

namespace fs = std::filesystem;

constexpr double kDaemonLook_s = 0.1, kDaemonPatience_s = 20;
constexpr mode_t kOwn = 0700, kForAllToEnter = 0711;

Result<void> make_folder(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0 && ::chmod(path.c_str(), mode) == 0) return {};  // whatever the umask
  return failed(fmt::format("cannot make the folder {}: {}", path, errno_text(errno)));
}

/// It was made by root in a folder of root's, so it is what it was.
Result<void> give(const std::string& path, const process::Credentials& owner) {
  if (::lchown(path.c_str(), static_cast<uid_t>(owner.uid), static_cast<gid_t>(owner.gid)) == 0) return {};
  return failed(fmt::format("cannot give {} to user {}: {}", path, owner.uid, errno_text(errno)));
}

/// A command as that user. Names of users are not looked up: that may take long.
std::vector<std::string> as_user(const process::Credentials& user) {
  if (user.uid == static_cast<int>(::geteuid())) return {};
  std::vector<std::string> words{"setpriv", fmt::format("--reuid={}", user.uid), fmt::format("--regid={}", user.gid),
                                 "--no-new-privs", "--inh-caps=-all"};
  words.push_back(user.groups.empty() ? "--clear-groups" : fmt::format("--groups={}", fmt::join(user.groups, ",")));
  words.emplace_back("--");
  return words;
}

/// The parts of devices that jobs with daemons hold: by user and device.
std::set<std::pair<int, std::string>> needed_by(const pool::PoolState& state) {
  std::set<std::pair<int, std::string>> needed;
  for (const pool::Lease& lease : state.leases) {
    const pool::Job* job = state.find(lease.job);
    const bool has_daemon = job && std::ranges::find(job->daemons, lease.device) != job->daemons.end();
    if (has_daemon && lease.share < 1) needed.emplace(job->uid, share::device_folder_name(lease.device));
  }
  return needed;
}

}  // namespace

SharingDaemons::SharingDaemons(Options options) : options_(std::move(options)) {}

std::string SharingDaemons::folder_of(int uid) const { return fmt::format("{}/{}", options_.folder, uid); }

/// Another prefix than that of jobs' cgroups, so that nobody takes it for one of theirs.
std::string SharingDaemons::cgroup_name(const Key& key) const {
  return fmt::format("remuda-mps-{}-{}-{}", confine::pool_identity(options_.pool), key.first, key.second);
}

std::vector<SharingDaemons::Daemon> SharingDaemons::find_again(const pool::PoolState& state, double now_s) {
  if (options_.folder.empty()) return {};
  const auto needed = needed_by(state);
  std::vector<Daemon> found;
  const std::string prefix = fmt::format("remuda-mps-{}-", confine::pool_identity(options_.pool));
  for (const confine::CgroupPlace& place : confine::job_places()) {
    std::error_code error;
    for (fs::directory_iterator entry(place.own, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with(prefix)) continue;
      const auto parts = split(name.substr(prefix.size()), '-');
      const Key key{parse_number<int>(parts.front()).value_or(-1), parts.back()};
      if (needed.contains(key) && !kept_.contains(key))
        keep(key, entry->path().string());
      else
        this->end(key, entry->path().string());
    }
  }
  for (const pool::Lease& lease : state.leases)
    if (const pool::Job* job = state.find(lease.job))
      if (const auto kept = kept_.find({job->uid, share::device_folder_name(lease.device)}); kept != kept_.end())
        found.push_back({kept->second.number, lease.device, kept->second.cgroup});
  if (!left_.all().empty()) next_s_ = now_s;
  return found;
}

SharingDaemons::Kept& SharingDaemons::keep(const Key& key, const std::string& cgroup) {
  Kept& kept = kept_[key];
  kept.number = next_number_--;
  kept.cgroup = cgroup;
  return kept;
}

/// The folders within become the user's while nobody but root can enter, the outer one last.
Result<void> SharingDaemons::make_folders(const Key& key, const process::Credentials& owner) const {
  const std::string outer = folder_of(key.first), folder = outer + "/" + key.second;
  for (const std::string& path : {options_.folder, outer})
    if (struct stat info{}; ::lstat(path.c_str(), &info) != 0) REMUDA_TRY(make_folder(path, kForAllToEnter));
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  REMUDA_TRY(make_folder(folder, kOwn));
  for (const char* part : {"/pipe", "/log"}) {
    REMUDA_TRY(make_folder(folder + part, kOwn));
    REMUDA_TRY(give(folder + part, owner));
  }
  return give(folder, owner);
}

Result<void> SharingDaemons::start(const Key& key, const Device& device, const process::Credentials& user,
                                   double now_s) {
  const auto program = share::find_mps_control();
  if (!program) return failed(share::no_mps_control());
  const auto places = confine::job_places();
  if (places.empty()) return failed("there is no cgroup for it");
  REMUDA_ASSIGN(confine::JobCgroup cgroup, confine::JobCgroup::make(places.front(), cgroup_name(key)));
  REMUDA_TRY(make_folders(key, user));
  process::ProcessSpec spec =
      share::mps_starter(*program, folder_of(key.first) + "/" + key.second, device.uuid.value_or(""));
  const std::vector<std::string> prefix = as_user(user);
  spec.argv.insert(spec.argv.begin(), prefix.begin(), prefix.end());
  spec.folder = "/";
  spec.cgroup = cgroup.fd();
  REMUDA_ASSIGN(process::ChildProcess starter, process::ChildProcess::spawn(std::move(spec)));
  Kept& kept = keep(key, cgroup.folder());
  kept.until_s = now_s + kDaemonPatience_s;
  kept.starter.emplace(std::move(starter));
  started_.push_back({kept.number, device.id, kept.cgroup});
  cgroup.release();
  next_s_ = std::min(next_s_, now_s + kDaemonLook_s);
  return {};
}

std::optional<pool::RecordDaemons> SharingDaemons::begin(const pool::PoolState& state, const pool::Job& job,
                                                         const Inventory& inventory, bool is_allowed, double now_s) {
  if (options_.folder.empty() || job.request.share >= 1) return std::nullopt;
  const auto user = process::credentials_of(job.keeper);
  const bool may_be =
      is_allowed && user && user->uid == job.uid && (user->uid == static_cast<int>(::geteuid()) || ::geteuid() == 0);
  pool::RecordDaemons record{.job = job.id, .folder = folder_of(job.uid)};
  for (const pool::Lease& lease : state.leases) {
    const Device* device = lease.job == job.id ? inventory.find(lease.device) : nullptr;
    if (!may_be || !device || !share::mps_obstacle(*device).empty()) continue;
    if (!share::other_sharer(state, device->id, job.id).empty()) continue;  // it serves one user at a time
    const Key key{job.uid, share::device_folder_name(device->id)};
    if (kept_.contains(key) || start(key, *device, *user, now_s)) record.devices.push_back(device->id);
  }
  return record;
}

void SharingDaemons::end(const Key& key, const std::string& cgroup) {
  kill_members(cgroup, std::nullopt);
  left_.add(cgroup);
  const std::string folder = folder_of(key.first) + "/" + key.second;
  (void)!::lchown(folder.c_str(), ::geteuid(), ::getegid());  // nobody else enters while it is removed
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  ::rmdir(folder_of(key.first).c_str());
}

std::vector<int64_t> SharingDaemons::see(const pool::PoolState& state, double now_s) {
  std::vector<int64_t> ended;
  if (kept_.empty()) return ended;
  const auto needed = needed_by(state);
  for (auto one = kept_.begin(); one != kept_.end();) {
    if (needed.contains(one->first)) {
      ++one;
      continue;
    }
    ended.push_back(one->second.number);
    end(one->first, one->second.cgroup);
    next_s_ = std::min(next_s_, now_s + kDaemonLook_s);
    one = kept_.erase(one);
  }
  return ended;
}

/// A starter that has failed needs no word here: the job waits until the daemon answers, and then goes without it.
void SharingDaemons::step(double now_s) {
  if (now_s < next_s_) return;
  next_s_ = kNever_s;
  for (auto& [_, kept] : kept_) {
    if (!kept.starter) continue;
    char dropped[512];
    while (::read(kept.starter->output(), dropped, sizeof dropped) > 0) {
    }
    if (kept.starter->exit_state() || now_s >= kept.until_s)
      kept.starter.reset();
    else
      next_s_ = now_s + kDaemonLook_s;
  }
  for (const std::string& cgroup : left_.all()) kill_members(cgroup, std::nullopt);
  left_.sweep();
  if (!left_.all().empty()) next_s_ = std::min(next_s_, now_s + kDaemonLook_s);
}

}  // namespace remuda::agent
