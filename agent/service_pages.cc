// What callers read of the pool.
#include <algorithm>

#include "agent/pages.h"
#include "agent/service.h"

namespace remuda::agent {

Result<wire::Page> Service::around(const Caller& caller, const wire::Request& request) {
  const Readable all{pool_.seen(), view_.allocations()};
  REMUDA_ASSIGN(const auto job, find(request.job));
  return page_around(all, caller, job ? &*job : nullptr, request.after);
}

Result<std::optional<pool::Job>> Service::find(int64_t id) {
  if (const pool::Job* job = pool_.seen().find(id)) return *job;
  if (id == 0) return std::nullopt;
  return pool_.find(id);
}

Result<wire::Page> Service::ended(const Caller& caller, const wire::Request& request) {
  constexpr int kMostRead = 256;  // a page has no more
  const int most = std::clamp(request.at_most, 0, kMostRead);
  REMUDA_ASSIGN(const std::vector<pool::Job> jobs, pool_.ended(most, request.job));
  wire::Page page = page_of_ended({pool_.seen(), view_.allocations()}, caller, jobs);
  page.has_more = page.has_more || (static_cast<int>(jobs.size()) == most && most < request.at_most);
  return page;
}

}  // namespace remuda::agent
