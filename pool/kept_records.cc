#include "pool/kept_records.h"

#include <algorithm>
#include <limits>

namespace remuda::pool {
namespace {

/// The most that each may have for all together to have no more than `limit`.
size_t level(std::vector<size_t> amounts, size_t limit) {
  std::ranges::sort(amounts);
  for (size_t i = 0; i < amounts.size(); ++i) {
    const size_t each = limit / (amounts.size() - i);
    if (amounts[i] > each) return each;
    limit -= amounts[i];
  }
  return std::numeric_limits<size_t>::max();
}

}  // namespace

void KeptRecords::add(int64_t job, int uid, size_t bytes) {
  Owner& owner = owners_[uid];
  const auto [record, is_new] = owner.records.try_emplace(job, bytes);
  if (is_new) owner.bytes += bytes;
}

std::vector<int64_t> KeptRecords::take_excess(const std::function<bool(int64_t)>& is_needed) {
  std::vector<size_t> jobs, bytes;
  for (const auto& [_, owner] : owners_) {
    jobs.push_back(std::min(owner.records.size(), limits_.jobs_of_owner));
    bytes.push_back(std::min(owner.bytes, limits_.bytes_of_owner));
  }
  const size_t most_jobs = std::min(limits_.jobs_of_owner, level(std::move(jobs), limits_.jobs));
  const size_t most_bytes = std::min(limits_.bytes_of_owner, level(std::move(bytes), limits_.bytes));
  std::vector<int64_t> gone;
  for (auto& [_, owner] : owners_) {
    for (auto record = owner.records.begin();
         record != owner.records.end() && (owner.records.size() > most_jobs || owner.bytes > most_bytes);) {
      if (is_needed(record->first)) {
        ++record;
        continue;
      }
      gone.push_back(record->first);
      owner.bytes -= record->second;
      record = owner.records.erase(record);
    }
  }
  return gone;
}

}  // namespace remuda::pool
