#include "cli/jobs/array_jobs.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>

#include "run/array_spec.h"

namespace remuda::cli {
namespace {

/// Read from the text before its command: --array 0-9%2.
std::vector<int> indices_of(const pool::Job& array) {
  if (array.command.size() < 2 || array.command.front() != "--array") return {};
  const auto spec = run::parse_array(array.command[1]);
  return spec ? spec->indices : std::vector<int>();
}

std::vector<int>& list_for(ArrayStates& states, const pool::Job& job) {
  switch (job.state) {
    case pool::JobState::waiting:
      return states.waiting;
    case pool::JobState::running:
      return states.running;
    case pool::JobState::ended:
      break;
  }
  if (succeeded(job)) return states.done;
  return job.cancelled ? states.cancelled : states.failed;
}

}  // namespace

Result<std::vector<pool::Job>> jobs_of_array(pool::Access& pool, int64_t array) {
  constexpr int64_t kMostRemembered = 1 << 20;
  REMUDA_ASSIGN(pool::PoolState state, pool.read());
  const int64_t later =
      std::clamp<int64_t>(state.next_job - array, 0, kMostRemembered);  // all its jobs are among these
  REMUDA_ASSIGN(std::vector<pool::Job> jobs, pool.ended(static_cast<int>(later)));
  std::ranges::move(state.jobs, std::back_inserter(jobs));
  std::erase_if(jobs, [&](const pool::Job& job) { return job.array != array || is_array(job); });
  std::ranges::stable_sort(jobs, {}, [](const pool::Job& job) { return std::pair(job.array_index, job.id); });
  const auto same = std::ranges::unique(jobs, {}, &pool::Job::id);  // one may have ended between the two reads
  jobs.erase(same.begin(), same.end());
  return jobs;
}

std::vector<int> ArrayStates::not_done() const {
  std::vector<int> indices;
  for (const auto* list : {&failed, &cancelled, &not_started})
    indices.insert(indices.end(), list->begin(), list->end());
  std::ranges::sort(indices);
  return indices;
}

ArrayStates array_states(const pool::Job& array, const std::vector<pool::Job>& jobs) {
  ArrayStates states;
  std::map<int, const pool::Job*> by_index;
  for (const int index : indices_of(array)) by_index[index] = nullptr;
  for (const pool::Job& job : jobs) by_index[job.array_index] = &job;
  const bool was_cancelled = array.state == pool::JobState::ended && array.cancelled;
  for (const auto& [index, job] : by_index) {
    auto& without_job = was_cancelled ? states.cancelled : states.not_started;
    (job ? list_for(states, *job) : without_job).push_back(index);
  }
  return states;
}

std::string states_text(const pool::Job& array, const ArrayStates& states) {
  const bool has_ended = array.state == pool::JobState::ended;
  const size_t to_come = states.not_started.size();
  const std::pair<size_t, const char*> counts[] = {{states.done.size(), "done"},
                                                   {states.failed.size(), "failed"},
                                                   {states.cancelled.size(), "cancelled"},
                                                   {states.running.size(), "running"},
                                                   {states.waiting.size() + (has_ended ? 0 : to_come), "waiting"},
                                                   {has_ended ? to_come : 0, "not started"}};
  std::string text;
  for (const auto& [count, word] : counts)
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  if (!has_ended && array.paused) text += "; paused";
  return text;
}

}  // namespace remuda::cli
