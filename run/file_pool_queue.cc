#include <algorithm>
#include <poll.h>
#include <utility>

#include "base/clock.h"
#include "pool/transitions.h"
#include "run/file_pool.h"
#include "share/job_sharing.h"

namespace remuda::run {
namespace {

/// How often the keeper that looks after the pool does so without an event: on the live machine, processes that do not
/// use remuda start and end without notice.
constexpr double kLiveLook_s = 2, kRecordedLook_s = 10;
/// How long the next in line, and the others, wait before they check that it does.
constexpr double kNextTrust_s = 5, kTrust_s = 30;
static_assert(kTrust_s < pool::kLongestBeat_s / 2, "a waiting keeper is not taken for a stopped one");

bool comes_in(const std::vector<int>& readable, double seconds) {
  std::vector<pollfd> polled;
  for (const int fd : readable) polled.push_back({fd, POLLIN, 0});
  return ::poll(polled.data(), polled.size(), static_cast<int>(seconds * 1000)) != 0;
}

}  // namespace

Result<pool::PoolState> FilePool::attend(int64_t id) {
  pool::beat(folder_);
  REMUDA_ASSIGN(attended_, pool_.read());
  const int before = count_before(attended_, id);
  const bool was_first = std::exchange(maintains_pool_, before == 0);
  is_next_ = before == 1;
  const pool::Job* job = attended_.find(id);
  if (!job || job->state != pool::JobState::waiting || !(maintains_pool_ || was_first)) return attended_;
  REMUDA_TRY(tidy());
  share::stop_unused_daemons(folder_, *this);
  const double now_s = monotonic_s();
  if (was_first && (now_s - looked_at_s_ >= look_s() || wall_s() >= begins_at_s_)) {
    looked_at_s_ = now_s;
    begins_at_s_ = pool::begins_next(attended_, wall_s());
    if (machine_.is_live()) REMUDA_TRY(machine_.read());
    REMUDA_TRY(apply(pool::StartJobs{}));
  }
  REMUDA_ASSIGN(attended_, pool_.read());
  return attended_;
}

/// The more jobs wait, the less often each keeper reads the pool, so that the total load does not grow. A keeper whose
/// job is started is woken by a signal.
Result<void> FilePool::rest(int64_t job, const std::vector<int>& readable) {
  constexpr double kEach_s = 0.005, kMost_s = 2;
  const auto keepers = [&] { return keepers_to_watch(attended_, job); };
  if (maintains_pool_) return pool_.wait(keepers(), until_next_look_s(), readable);
  const auto waiting = std::ranges::count(attended_.jobs, pool::JobState::waiting, &pool::Job::state);
  if (comes_in(readable, std::min(kMost_s, kEach_s * static_cast<double>(waiting)))) return {};
  return pool_.wait(keepers(), is_next_ ? kNextTrust_s : kTrust_s, readable);
}

double FilePool::look_s() const { return machine_.is_live() ? kLiveLook_s : kRecordedLook_s; }

/// The keeper that looks after the pool starts jobs whose time to begin has come.
double FilePool::until_next_look_s() {
  begins_at_s_ = pool::begins_next(attended_, wall_s());
  return std::clamp(begins_at_s_ - wall_s(), 0.0, look_s());
}

/// How many working keepers wait before this one, at most 2; 2 also where this job is not in the queue.
int FilePool::count_before(const pool::PoolState& state, int64_t id) const {
  constexpr int kMost = 2;
  int before = 0;
  for (const pool::Job& job : state.jobs) {
    if (job.state != pool::JobState::waiting || is_array(job)) continue;
    if (job.id == id) return before;
    if (pool::is_working(folder_, job.keeper) && ++before == kMost) break;
  }
  return kMost;
}

std::vector<process::ProcessId> FilePool::keepers_to_watch(const pool::PoolState& state, int64_t id) const {
  std::vector<process::ProcessId> keepers;
  for (const pool::Job& job : state.jobs) {
    if (job.state == pool::JobState::ended || job.id == id || !pool::lives(folder_, job.keeper)) continue;
    keepers.push_back(job.keeper);
    if (!maintains_pool_ && job.state == pool::JobState::waiting && !is_array(job)) return {job.keeper};
  }
  return keepers;
}

}  // namespace remuda::run
