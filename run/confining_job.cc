#include "run/confining_job.h"

#include <algorithm>
#include <string>
#include <vector>

#include "confine/cgroup_place.h"

namespace remuda::run {

std::optional<int64_t> confining_job(const pool::PoolState& state) {
  const auto filters = [](const pool::Job& job) {
    return job.state == pool::JobState::running && job.files_denied > 0;
  };
  if (std::ranges::none_of(state.jobs, filters)) return std::nullopt;
  const std::vector<confine::CgroupPlace> places = confine::own_cgroup_places();
  for (const pool::Job& job : state.jobs) {
    if (!filters(job)) continue;
    const std::string name = job.cgroup.substr(job.cgroup.rfind('/') + 1) + "/";
    const auto is_within = [&](const confine::CgroupPlace& place) {
      return (place.own + "/").find("/" + name) != std::string::npos;
    };
    if (std::ranges::any_of(places, is_within)) return job.id;
  }
  return std::nullopt;
}

}  // namespace remuda::run
