#include "pool/kept_state.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/check.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

void copy_changes(const PoolState& from, PoolState& to, const std::vector<int64_t>& changed) {
  for (const int64_t id : changed) {
    const Job& job = *from.find(id);
    if (Job* known = to.find(id))
      *known = job;
    else
      to.jobs.insert(job);
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
  forget_touched();
}

void KeptState::forget_touched() {
  before_.jobs.forget_touched();
  after_.jobs.forget_touched();
}

void KeptState::add(const std::vector<Job>& jobs) {
  for (PoolState* state : {&before_, &after_})
    for (const Job& job : jobs) state->jobs.insert(job);
  forget_touched();
}

std::vector<int64_t> KeptState::clean_changed() {
  REMUDA_CHECK(after_.jobs.size() >= before_.jobs.size(), "no transition loses a job");
  std::vector<int64_t> changed;
  for (const int64_t id : after_.jobs.touched()) {
    const Job* known = std::as_const(before_).find(id);
    Job* job = after_.find(id);
    REMUDA_CHECK(job, "no transition loses a job");
    if (known && *known == *job) continue;
    clean_texts(*job);
    if (!known || *known != *job) changed.push_back(id);
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

void KeptState::accept(const std::vector<int64_t>& changed) {
  copy_changes(after_, before_, changed);
  forget_touched();
}

void KeptState::undo() {
  after_.jobs.erase_if([this](const Job& job) { return job.id >= before_.next_job; });
  std::vector<int64_t> touched = after_.jobs.touched();
  std::erase_if(touched, [this](int64_t id) { return id >= before_.next_job; });
  copy_changes(before_, after_, touched);
  forget_touched();
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
    state->jobs.erase_if([&](const Job& job) { return gone.contains(job.id); });
}

}  // namespace remuda::pool
