// How a service begins: with what the agent before it has left.
#include <chrono>
#include <utility>

#include "agent/service.h"
#include "pool/lifeline.h"
#include "pool/transitions.h"

namespace remuda::agent {
namespace {

/// All users wait meanwhile: what cannot be written now is asked again (Service::answer()).
constexpr std::chrono::milliseconds kDatabasePatience{50};

}  // namespace

Service::Service(std::string folder, Heartbeat heartbeat, pool::Pool pool, pool::MachineView view, double now_s,
                 Means means)
    : folder_(std::move(folder)),
      heartbeat_(std::move(heartbeat)),
      pool_(std::move(pool)),
      view_(std::move(view)),
      read_at_s_(now_s),
      policy_at_s_(now_s),
      holds_(std::make_unique<Holds>(folder_)),
      enforcement_(std::move(means.enforcement)),
      revival_(std::move(means.revival)),
      handover_(std::move(means.handover)),
      daemons_(std::move(means.daemons)),
      partitions_(std::move(means.partitions)),
      offered_(view_.inventory(), {}),
      say_(std::move(means.say)),
      policy_path_(std::move(means.policy)) {
  heed_policy();
}

Result<Service> Service::open(const std::string& folder, pool::MachineView view, double now_s, Means means) {
  Heartbeat heartbeat(folder);
  REMUDA_ASSIGN(pool::Pool pool, pool::Pool::open(folder));
  REMUDA_ASSIGN(const std::vector<std::string> aside, pool.set_aside(wall_s()));
  Service service(folder, std::move(heartbeat), std::move(pool), std::move(view), now_s, std::move(means));
  for (const std::string& sentence : aside) service.say_(sentence);
  REMUDA_TRY(service.find_lost());
  REMUDA_ASSIGN(const pool::PoolState state, service.pool_.read());
  for (const pool::Job& job : state.jobs) {
    if (!job.submission.empty()) service.requests_[{job.uid, job.submission}] = job.id;
    if (job.state == pool::JobState::ended) continue;
    if (needs_keeper(job)) service.revival_.add(job);
    if (job.unkept) continue;
    service.holds_->add(job);
    const bool is_held =
        job.state != pool::JobState::running ||
        service.holds_->find_again(job, service.nodes_of_job(job.id), service.heartbeat_.seen_s(), now_s);
    if (!is_held && is_alive(job.keeper)) service.begin(job, now_s);
    if (is_held && job.state == pool::JobState::running)
      (void)service.enforcement_.let(job.id, job.cgroup, service.nodes_of_job(job.id));
  }
  service.find_daemons(state, now_s);
  service.handover_.begin(state, service.view_.inventory(), now_s);
  service.enforce();
  service.is_due_ = true;
  service.pool_.set_patience(kDatabasePatience);
  return service;
}

/// Before anything can start: a job without a keeper would end at once.
Result<void> Service::find_lost() {
  return pool_.change([&](pool::PoolState& state) -> Result<void> {
    for (const pool::Job& job : state.jobs)
      if (job.state == pool::JobState::waiting && job.outlives_keeper && !pool::lives(folder_, job.keeper))
        lose_keeper(state, job.id);
    return {};
  });
}

}  // namespace remuda::agent
