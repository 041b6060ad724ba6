#include "cli/jobs/waiting.h"

#include <algorithm>
#include <fmt/format.h>
#include <ranges>

#include "cli/jobs/job_name.h"
#include "pool/request_json.h"
#include "pool/transitions.h"

namespace remuda::cli {

WaitingReasons::WaitingReasons(const pool::PoolState& state, const Inventory& inventory,
                               const std::vector<place::Held>& foreign)
    : state_(state), layout_(inventory), held_(held_by_leases(state)) {
  held_.insert(held_.end(), foreign.begin(), foreign.end());
}

bool WaitingReasons::fits(place::Request request, int count) const {
  request.any_model = request.any_model || request.is_static();  // named devices may be unlike
  request.count = count;
  return place::fits(layout_, request, held_).value_or(false);
}

const WaitingReasons::Free& WaitingReasons::free_for(const place::Request& request) {
  const auto [answer, is_new] = answers_.try_emplace(to_line(pool::to_json(request)));
  if (!is_new) return answer->second;
  const auto counts = std::views::iota(1, request.count + 1);
  const auto first_too_many = std::ranges::partition_point(counts, [&](int count) { return fits(request, count); });
  answer->second.count = static_cast<int>(first_too_many - counts.begin());
  answer->second.is_known = place::fits(layout_, request, held_).has_value();
  return answer->second;
}

std::string WaitingReasons::text(const pool::Job& job, const pool::Job* before) {
  std::string first;
  for (const int64_t id : job.after) {
    const pool::Job* other = state_.find(id);
    if (other && other->state != pool::JobState::ended)
      first += fmt::format("{}{}", first.empty() ? "after job " : ", ", id);
  }
  if (!first.empty()) return first;
  const Free& free = free_for(job.request);
  if (!free.is_known) return "no such devices now";
  std::string text = fmt::format("{} wanted, {} free", job.request.count, free.count);
  bool has_room_made = false;
  for (const pool::Job& other : state_.jobs) {
    if (other.preempted_by != job.id) continue;
    text += fmt::format("; job {} makes room", name_of(other));
    has_room_made = true;
  }
  if (before && !has_room_made) text += fmt::format("; behind job {}", name_of(*before));
  return text;
}

}  // namespace remuda::cli
