#include "agent/adopt.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "pool/pool.h"
#include "pool/renew.h"
#include "pool/transitions.h"
#include "process/status.h"

namespace remuda::agent {
namespace {

constexpr double kUsualGrace_s = 30;

/// Whether the process is its user's and has the pool's file open, as keepers have. What the record says is a word of
/// users, and an agent of root moves and kills the process that it names; another one can do that to none of others,
/// and does not see what they have open.
bool is_keeper(const pool::Job& job, const struct stat& pool) {
  if (::geteuid() != 0) return true;
  if (process::sole_user_of(job.keeper.pid) != job.uid) return false;
  std::error_code error;
  std::filesystem::directory_iterator fds(fmt::format("/proc/{}/fd", job.keeper.pid), error);
  for (const std::filesystem::directory_iterator end; !error && fds != end; fds.increment(error))
    if (struct stat info{};
        ::stat(fds->path().c_str(), &info) == 0 && info.st_dev == pool.st_dev && info.st_ino == pool.st_ino)
      return process::is_alive(job.keeper);
  return false;
}

/// The folders above it are for all users.
Result<void> make_pool_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return failed(fmt::format("cannot make the folder {}: {}", folder, errno_text(errno)));
}

}  // namespace

Result<std::string> adopt_pool(const std::string& folder) {
  REMUDA_TRY(make_pool_folder(folder));
  struct stat shared{};
  (void)::stat((folder + "/pool.db").c_str(), &shared);
  REMUDA_ASSIGN(const bool was_shared, pool::make_private(folder));
  if (!was_shared) return std::string();
  REMUDA_ASSIGN(pool::Pool pool, pool::Pool::open(folder));
  REMUDA_ASSIGN(const std::vector<std::string> aside, pool.set_aside(wall_s()));
  int64_t running = 0, waiting = 0;
  REMUDA_TRY(pool.change([&](pool::PoolState& state) -> Result<void> {
    std::vector<int64_t> forged;
    for (const pool::Job& job : state.jobs)
      if (job.state == pool::JobState::running && process::is_alive(job.keeper) && !is_keeper(job, shared))
        forged.push_back(job.id);
    for (const int64_t job : forged)
      end(state, job, {.exit_status = pool::kEndedByRemuda, .why = "its record names a process that does not keep it"},
          {}, wall_s());
    running = std::ranges::count(state.jobs, pool::JobState::running, &pool::Job::state);
    std::vector<int64_t> ended;
    for (const pool::Job& job : state.jobs)
      if (job.state == pool::JobState::waiting) ended.push_back(job.id);
    waiting = static_cast<int64_t>(ended.size());
    for (const pool::Job& job : state.jobs)
      if (job.state == pool::JobState::running && job.grace_s == 0)
        state.jobs.edit(job).grace_s = kUsualGrace_s;  // it was not recorded
    for (const int64_t job : ended)
      end(state, job, {.exit_status = pool::kEndedByRemuda, .why = "its pool went over to the agent: submit it again"},
          {}, wall_s());
    return {};
  }));
  std::string also;
  for (const std::string& sentence : aside) also += "; " + sentence;
  return fmt::format(
      "took over {}, which its users could write: {} running jobs keep their devices until they end, {} "
      "waiting ones ended{}",
      folder, running, waiting, also);
}

}  // namespace remuda::agent
