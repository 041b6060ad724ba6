#include "pool/state.h"

#include <algorithm>
#include <utility>

namespace remuda::pool {

const Job* Jobs::find(int64_t id) const {
  const auto found = std::ranges::lower_bound(jobs_, id, {}, &Job::id);
  return found != jobs_.end() && found->id == id ? &*found : nullptr;
}

Job* Jobs::find(int64_t id) {
  const Job* const found = std::as_const(*this).find(id);
  return found ? &edit(*found) : nullptr;
}

Job& Jobs::edit(const Job& job) {
  touched_.push_back(job.id);
  return jobs_[static_cast<size_t>(&job - jobs_.data())];
}

void Jobs::push_back(Job job) {
  touched_.push_back(job.id);
  jobs_.push_back(std::move(job));
}

void Jobs::insert(Job job) {
  touched_.push_back(job.id);
  jobs_.insert(std::ranges::upper_bound(jobs_, job.id, {}, &Job::id), std::move(job));
}

std::vector<int64_t> Jobs::touched() const {
  std::vector<int64_t> ids = touched_;
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  return ids;
}

}  // namespace remuda::pool
