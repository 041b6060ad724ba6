#include "cli/jobs/waiting.h"

#include <algorithm>
#include <fmt/format.h>
#include <ranges>

#include "base/duration.h"
#include "cli/jobs/job_name.h"
#include "place/host.h"
#include "pool/admission.h"
#include "pool/request_json.h"
#include "pool/transitions.h"

namespace remuda::cli {

WaitingReasons::WaitingReasons(const pool::PoolState& state, const Inventory& inventory,
                               const std::vector<place::Held>& foreign, const pool::Policy& policy, double now_s)
    : state_(state), layout_(inventory), held_(held_by_leases(state)), policy_(policy), now_s_(now_s) {
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
  place::Request unlike = request;
  unlike.any_model = true;
  answer->second.count_unlike = fits(unlike, request.count) ? request.count : answer->second.count;
  answer->second.is_known = place::fits(layout_, request, held_).has_value();
  return answer->second;
}

std::string WaitingReasons::awaited(const pool::Job& job) const {
  std::string text;
  for (const std::vector<int64_t>* ids : {&job.after, &job.after_any})
    for (const int64_t id : *ids) {
      const pool::Job* other = state_.find(id);
      if (other && other->state != pool::JobState::ended)
        text += fmt::format("{}{}", text.empty() ? "after job " : ", ", id);
    }
  return text;
}

std::string WaitingReasons::text(const pool::Job& job, const pool::Job* before) {
  if (job.keeper_failed) return "its process is started again";
  if (job.paused) return "paused";
  if (job.why.starts_with(pool::kNoPolicy)) return job.why;
  if (job.begin_s > now_s_) return fmt::format("begins in {}", duration_text(job.begin_s - now_s_));
  if (std::string others = awaited(job); !others.empty()) return others;
  if (std::string limit = pool::over_limit(state_, job, policy_, now_s_); !limit.empty()) return limit;
  place::Request devices = job.request;
  devices.cores = 0;
  devices.host_memory_bytes = 0;
  const Free& free = free_for(devices);
  if (!free.is_known) return "no such devices now";
  // It is not their number: a reservation, models that differ, a driver that does not answer. The scheduler has written
  // which.
  const bool is_unseen = free.count_unlike == 0 && !layout_.inventory().unseen().empty();
  const bool is_other_cause = free.count_unlike >= job.request.count || is_unseen;
  if (is_other_cause && !before && !job.why.empty()) return job.why;
  std::string text = fmt::format("{} wanted, {} free{}", job.request.count, free.count,
                                 free.count_unlike > free.count ? " of one model" : "");
  if (free.count_unlike >= job.request.count) {
    const place::HostRoom host(layout_.inventory(), held_);
    if (!host.fits(job.request)) text = host.shortage(job.request);
  }
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
