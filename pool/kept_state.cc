#include "pool/kept_state.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/check.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

void insert(PoolState& state, const Job& job) {
  state.jobs.insert(std::ranges::upper_bound(state.jobs, job.id, {}, &Job::id), job);
}

void copy_changes(const PoolState& from, PoolState& to, const std::vector<int64_t>& changed) {
  for (const int64_t id : changed) {
    const Job& job = *from.find(id);
    if (Job* known = to.find(id))
      *known = job;
    else
      insert(to, job);
  }
  to.next_job = from.next_job;
  to.leases = from.leases;
  to.usage = from.usage;
  to.spent = from.spent;
  to.drains = from.drains;
}

}  // namespace

void KeptState::set(PoolState state) {
  before_ = std::move(state);
  after_ = before_;
}

void KeptState::add(const std::vector<Job>& jobs) {
  for (PoolState* state : {&before_, &after_}) {
    state->jobs.insert(state->jobs.end(), jobs.begin(), jobs.end());
    std::ranges::sort(state->jobs, {}, &Job::id);
  }
}

std::vector<int64_t> KeptState::clean_changed() {
  std::vector<int64_t> changed;
  REMUDA_CHECK(after_.jobs.size() >= before_.jobs.size(), "no transition loses a job");
  for (size_t i = 0; i < after_.jobs.size(); ++i) {
    const bool is_known = i < before_.jobs.size();
    REMUDA_CHECK(!is_known || before_.jobs[i].id == after_.jobs[i].id, "no transition loses a job");
    if (is_known && before_.jobs[i] == after_.jobs[i]) continue;
    clean_texts(after_.jobs[i]);
    if (!is_known || before_.jobs[i] != after_.jobs[i]) changed.push_back(after_.jobs[i].id);
  }
  return changed;
}

bool KeptState::differs_beside_jobs() const {
  return before_.next_job != after_.next_job || before_.leases != after_.leases || before_.usage != after_.usage ||
         before_.spent != after_.spent || before_.drains != after_.drains;
}

bool KeptState::lacks_awaited(const std::vector<int64_t>& changed) const {
  return std::ranges::any_of(changed, [&](int64_t id) {
    const Job* job = before_.find(id);
    return job && job->state == JobState::waiting &&
           std::ranges::any_of(awaited_by(*job), [&](int64_t awaited) { return !before_.find(awaited); });
  });
}

void KeptState::accept(const std::vector<int64_t>& changed) { copy_changes(after_, before_, changed); }

void KeptState::undo() {
  after_.jobs.resize(std::min(after_.jobs.size(), before_.jobs.size()));
  std::vector<int64_t> changed;
  for (size_t i = 0; i < before_.jobs.size(); ++i)
    if (i >= after_.jobs.size() || after_.jobs[i] != before_.jobs[i]) changed.push_back(before_.jobs[i].id);
  copy_changes(before_, after_, changed);
}

void KeptState::forget_ended(std::vector<int64_t> candidates) {
  for (size_t i = candidates.size(); i > 0; --i)
    if (const Job* job = before_.find(candidates[i - 1]))
      std::ranges::copy(awaited_by(*job), std::back_inserter(candidates));
  std::set<int64_t> gone;
  for (const int64_t id : candidates)
    if (const Job* job = before_.find(id); job && job->state == JobState::ended) gone.insert(id);
  for (const Job& job : before_.jobs) {
    if (gone.empty()) return;
    if (job.state != JobState::waiting) continue;
    for (const int64_t id : awaited_by(job)) gone.erase(id);
  }
  for (PoolState* state : {&before_, &after_})
    std::erase_if(state->jobs, [&](const Job& job) { return gone.contains(job.id); });
}

}  // namespace remuda::pool
