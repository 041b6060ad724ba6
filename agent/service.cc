#include "agent/service.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "agent/pages.h"
#include "agent/rules.h"
#include "base/clock.h"
#include "confine/device_nodes.h"
#include "device/fields.h"
#include "pool/admission.h"
#include "pool/lifeline.h"
#include "pool/transitions.h"
#include "process/status.h"

namespace remuda::agent {
namespace {

constexpr size_t kMostRemembered = 1 << 17;

bool is_of_keeper(const pool::Operation& operation) {
  return std::holds_alternative<pool::End>(operation) || std::holds_alternative<pool::Requeue>(operation) ||
         std::holds_alternative<pool::GiveWay>(operation);
}

/// The job that the word of a keeper is about.
int64_t job_of(const pool::Operation& word) {
  if (const auto* end = std::get_if<pool::End>(&word)) return end->job;
  if (const auto* requeue = std::get_if<pool::Requeue>(&word)) return requeue->job;
  if (const auto* give_way = std::get_if<pool::GiveWay>(&word)) return give_way->job;
  return 0;
}

std::string part_of_job(int64_t job) {
  return fmt::format("the process that asks is one of job {}, and stays in it", job);
}

bool is_bound_by_policy(const pool::Operation& operation) {
  return std::holds_alternative<pool::Submit>(operation) || std::holds_alternative<pool::Reprioritize>(operation);
}

/// What the agent knows better than those who say it, or does without being asked.
bool is_needless(const pool::Operation& operation) {
  return std::holds_alternative<pool::StartJobs>(operation) ||
         std::holds_alternative<pool::RecordConfinement>(operation);
}

}  // namespace

void Service::enforce() {
  if (view_.policy()) enforcement_.update(*view_.policy(), view_.inventory(), given_out());
}

/// The policy was read.
void Service::heed_policy() {
  note_offers();
  const std::string error = view_.policy() ? "" : view_.policy().error().message;
  if (error == policy_error_) return;
  say_(error.empty() ? "the policy is right again, and jobs start" : pool::kNoPolicy + error);
  policy_error_ = error;
}

void Service::read_policy(double now_s) {
  view_.read_policy();
  policy_at_s_ = now_s;
  heed_policy();
  enforce();
}

void Service::step(double now_s) {
  if (now_s >= next_policy_s()) read_policy(now_s);
  heartbeat_.step(!pool_.seen().leases.empty(), now_s);
  enforcement_.step(now_s);
  is_due_ = enforcement_.needs_reading() || is_due_;
  heed_notice(now_s);
  hand_over(now_s);
  daemons_.step(now_s);
  is_due_ = partitions_.step(now_s) || is_due_;
  revive(now_s);
  write_again(now_s);
  const std::vector<pool::Operation> words = holds_->step(now_s);
  if (words.empty() || now_s < busy_until_s_) return;  // given again
  pool_.forget_failure();
  const pool::Circumstances at{.inventory = view_.inventory(),
                               .policy = view_.policy(),
                               .uid = 0,
                               .now_s = wall_s(),
                               .last_policy = &view_.last_policy()};
  const auto changed = pool_.change([&](pool::PoolState& state) -> Result<void> {
    for (const pool::Operation& word : words) {
      const pool::Job* job = state.find(job_of(word));
      const bool is_left = job && job->outlives_keeper && !job->begun && !holds_->has_said(job->id);
      if (!is_left) {
        REMUDA_TRY(pool::apply(state, word, at));
        continue;
      }
      const int64_t id = job->id;  // it may have been granted, and not begun
      if (job->state == pool::JobState::running) REMUDA_TRY(pool::apply(state, pool::GiveWay{id, "", true}, at));
      lose_keeper(state, id);
      if (revival_.has_tried(id, now_s)) fail_keeper(state, id, view_.last_policy(), at.now_s);
    }
    return {};
  });
  if (!changed) return give_again({}, now_s);
  is_due_ = is_due_ || has_waiting();
  follow_up(now_s);
}

std::vector<int64_t> Service::take_changed() { return std::exchange(changed_, {}); }

/// One change of the pool, and what it has started. What frees devices makes the machine be read before they are
/// granted.
Result<pool::Applied> Service::change(const pool::Operation& operation, double now_s, const pool::Asker& who) {
  const bool is_old = !view_.policy() || now_s - policy_at_s_ >= kFresh_s;  // one that was mended counts at once
  if (is_bound_by_policy(operation) && is_old) read_policy(now_s);
  const Result<pool::Policy>& policy = view_.policy();
  pool::Applied applied;
  const bool starts = starts_jobs(operation) && is_fresh(now_s) && !is_blind_;
  const auto transition = [&](pool::PoolState& state) -> Result<void> {
    REMUDA_ASSIGN(applied, pool::apply(state, operation,
                                       {.inventory = offered_.machine(),
                                        .policy = policy,
                                        .uid = who.uid,
                                        .now_s = wall_s(),
                                        .user = who.name,
                                        .last_policy = &view_.last_policy()}));
    if (starts && policy) schedule(state, offered_.machine(), held_in(state), *policy, wall_s());
    if (starts && !policy) hold_back(state, policy.error().message, wall_s());
    return accept(state, operation, applied);
  };
  REMUDA_TRY(pool_.change(transition, ended_jobs_for(operation)));
  if (is_of_keeper(operation) || (starts_jobs(operation) && !starts)) is_due_ = is_due_ || has_waiting();
  follow_up(now_s);
  return applied;
}

/// What a change means for the processes of the jobs that it has changed.
void Service::follow_up(double now_s) {
  begins_at_s_ = std::min(begins_at_s_, begins_next(pool_.seen(), wall_s()));
  end_daemons(now_s);
  handover_.see(pool_.seen(), now_s);
  const std::vector<int64_t> changed = pool_.changed();
  std::ranges::copy(changed, std::back_inserter(changed_));
  for (const int64_t id : changed) {
    const pool::Job* job = pool_.seen().find(id);
    if (!job || job->state != pool::JobState::running) enforcement_.withdraw(id);
    if (job && needs_keeper(*job))
      revival_.add(*job);
    else
      revival_.remove(id);
    if (!job || job->state == pool::JobState::ended || job->unkept) {
      holds_->forget(id);
    } else if (job->state == pool::JobState::waiting) {
      if (holds_->has(id))
        holds_->rest(id);
      else
        holds_->add(*job);
    } else {
      if (!holds_->has(id)) holds_->add(*job);
      if (!holds_->runs(id)) begin(pool::Job(*job), now_s);
      if (const pool::Job* begun = pool_.seen().find(id)) holds_->see(*begun, now_s);
    }
  }
}

std::vector<std::string> Service::devices_of(int64_t job) const {
  std::vector<std::string> devices;
  for (const pool::Lease& lease : pool_.seen().leases)
    if (lease.job == job) devices.push_back(lease.device);
  return devices;
}

std::vector<confine::DeviceNode> Service::nodes_of_job(int64_t job) const {
  if (!view_.is_live()) return {};
  return nodes_of(view_.inventory(), devices_of(job));
}

/// Devices are not held for a job whose process cannot be started.
void Service::revive(double now_s) {
  for (const Revival::GivenUp& one : revival_.step(now_s)) end(one.job, one.why, now_s);
  std::ranges::copy(revival_.take_failed(), std::back_inserter(without_keeper_));
  if (without_keeper_.empty() || now_s < busy_until_s_) return;
  pool_.forget_failure();
  const auto changed = pool_.change([&](pool::PoolState& state) -> Result<void> {
    for (const int64_t job : without_keeper_) fail_keeper(state, job, view_.last_policy(), wall_s());
    return {};
  });
  if (!changed) return give_again({}, now_s);
  without_keeper_.clear();
  is_due_ = is_due_ || has_waiting();
  follow_up(now_s);
}

/// Before its keeper hears of it, it is in its cgroup. A process of another job cannot be: it would leave that one's.
void Service::begin(const pool::Job& job, double now_s) {
  if (const int64_t other = holds_->job_of(job.keeper); other != 0) return end(job.id, part_of_job(other), now_s);
  if (is_alive(job.keeper) && !process::sole_user_of(job.keeper.pid) && is_alive(job.keeper))
    return end(job.id, "the process that keeps it has become one with more rights than its user's", now_s);
  std::optional<confine::Withheld> withheld;
  if (view_.is_live() && enforcement_.filters_jobs()) withheld = withheld_from(job.id);
  const std::vector<confine::DeviceNode> nodes = nodes_of_job(job.id);
  const pool::RecordConfinement made = holds_->begin(job, withheld, nodes, now_s);
  if (const auto let = enforcement_.let(job.id, made.cgroup, nodes); !let)
    return end(job.id, let.error().message, now_s);
  std::vector<pool::Operation> words = begin_daemons(job, now_s);
  words.emplace_back(made);
  const pool::Circumstances at{.inventory = view_.inventory(), .policy = view_.policy(), .uid = 0, .now_s = wall_s()};
  pool_.forget_failure();
  const auto recorded = pool_.change([&](pool::PoolState& state) -> Result<void> {
    for (const pool::Operation& word : words) REMUDA_TRY(pool::apply(state, word, at));
    return {};
  });
  if (!recorded) return give_again(words, now_s);
  std::ranges::copy(pool_.changed(), std::back_inserter(changed_));
}

std::optional<int64_t> Service::known_request(const Caller& caller, const wire::Request& request) const {
  const auto known = requests_.find({caller.uid, request.id});
  return known == requests_.end() ? std::nullopt : std::optional(known->second);
}

void Service::remember(const Caller& caller, const wire::Request& request, int64_t job) {
  if (requests_.size() >= kMostRemembered) requests_.clear();  // a lost answer is asked for again within seconds
  requests_[{caller.uid, request.id}] = job;
}

/// Whether a keeper says how its job ended, and that is recorded: its answer was lost.
Result<bool> Service::is_repeated(const Caller& caller, const pool::Operation& word) {
  if (!std::holds_alternative<pool::End>(word) || pool_.seen().find(job_of(word))) return false;
  REMUDA_ASSIGN(const auto job, pool_.find(job_of(word)));
  return job && job->state == pool::JobState::ended && job->uid == caller.uid && job->keeper == caller.process;
}

/// A keeper has started its job's command, so that this is never started by another one. Which processes it is, the
/// job's cgroup says.
Result<pool::Applied> Service::take_beginning(const Caller& caller, int64_t id, double now_s) {
  const pool::Job* const job = pool_.seen().find(id);
  if (!job || job->state != pool::JobState::running || job->begun || job->keeper != caller.process)
    return pool::Applied{};
  return change(pool::RecordProcesses{id, {}}, now_s, {caller.uid, ""});
}

Result<pool::Applied> Service::apply(const Caller& caller, const policy::User& user, const wire::Request& request,
                                     double now_s) {
  pool::Operation operation = *request.operation;
  if (const auto known = known_request(caller, request))
    return pool::Applied{.job = is_of_keeper(operation) ? 0 : *known, .refused = {}, .cancelled = {}};
  if (is_needless(operation)) return pool::Applied{};
  if (const auto* begun = std::get_if<pool::RecordProcesses>(&operation))
    return take_beginning(caller, begun->job, now_s);
  REMUDA_ASSIGN(const bool is_recorded, is_repeated(caller, operation));
  if (is_recorded) return pool::Applied{};
  const bool asks_to_keep =
      std::holds_alternative<pool::Submit>(operation) || std::holds_alternative<pool::TakeOver>(operation);
  if (const int64_t job = asks_to_keep ? holds_->job_of(caller.process) : 0; job != 0)
    return usage_error(fmt::format("{}: start jobs from outside of it", part_of_job(job)));
  if (has_unknown_limits(caller, user, operation))
    return failed(
        fmt::format("the limits of this machine go by name and groups, and its user databases do not say those "
                    "of user {}: try again, or ask your administrator",
                    user.name));
  REMUDA_TRY(admit(operation, caller, user, request.id, pool_.seen()));
  if (const auto* asked = std::get_if<pool::Submit>(&operation))
    REMUDA_TRY(pool::check_not_given_out(asked->job, view_.inventory(), view_.allocations()));
  if (is_of_keeper(operation)) {
    const pool::Job* job = pool_.seen().find(job_of(operation));
    if (job && job->state == pool::JobState::running) {
      remember(caller, request, job->id);
      holds_->say(job->id, std::move(operation), now_s);
      step(now_s);
      return pool::Applied{};
    }
  }
  auto changed = change(operation, now_s, {caller.is_admin ? 0 : caller.uid, user.name});
  if (const auto* asked = std::get_if<pool::Submit>(&operation); asked && !changed)
    changed = tl::unexpected(with_rule_of_partitions(std::move(changed.error()), asked->job.request));
  REMUDA_ASSIGN(pool::Applied applied, std::move(changed));
  if (applied.job != 0) remember(caller, request, applied.job);
  return applied;
}

/// Whether what the policy lets this user have is not known, as they are not.
bool Service::has_unknown_limits(const Caller& caller, const policy::User& user,
                                 const pool::Operation& operation) const {
  const bool is_limited =
      std::holds_alternative<pool::Submit>(operation) || std::holds_alternative<pool::Reprioritize>(operation);
  return is_limited && !user.is_known && !caller.is_admin && view_.policy() && view_.policy()->limits_by_name();
}

Result<void> Service::enter(const Caller& caller, int64_t id) {
  const pool::Job* job = pool_.seen().find(id);
  if (!job) return usage_error(fmt::format("no job {} is there, or it has ended", id));
  REMUDA_TRY(pool::check_enter(*job, caller.uid));
  if (const int64_t other = holds_->job_of(caller.process); other != 0 && other != id)
    return usage_error(part_of_job(other));
  if (holds_->enter(id, caller.process)) return {};
  if (job->cgroup.empty()) return failed(pool::cannot_be_entered(id));
  return failed(fmt::format("the kernel refuses to move the process to job {}", id));
}

Result<Service::Reply> Service::reply(const Caller& caller, const policy::User& user, const wire::Request& request,
                                      double now_s) {
  using wire::Ask;
  Reply reply;
  const Readable all{pool_.seen(), view_.allocations()};
  const auto with = [&](const Result<wire::Page>& page) -> Result<Reply> {
    if (!page) return tl::unexpected(page.error());
    reply.answer.result = to_json(*page);
    return std::move(reply);
  };
  switch (request.ask) {
    case Ask::hello:
      REMUDA_TRY(wire::check_protocol(request.protocol));
      reply.answer.result =
          fields::write(wire::Greeting{wire::kProtocol, folder_, !caller.is_admin && enforcement_.hides_devices(),
                                       view_.policy() && view_.policy()->mps, policy_path_});
      return reply;
    case Ask::read:
    case Ask::own:
      return with(page_of_jobs(all, caller, request.ask == Ask::own, request.job));
    case Ask::around:
      reply.watched = request.job;
      return with(around(caller, request));
    case Ask::find: {
      reply.watched = request.job;
      REMUDA_ASSIGN(const auto job, find(request.job));
      return with(page_with(all, caller, job ? &*job : nullptr));
    }
    case Ask::ended:
      return with(ended(caller, request));
    case Ask::machine:
      reply.answer.result = to_json(machine_for(user.name, view_.inventory()));
      return reply;
    case Ask::enter:
      REMUDA_TRY(enter(caller, request.job));
      return reply;
    case Ask::bring:
      REMUDA_TRY(bring(caller, request.job, request.process));
      return reply;
    case Ask::apply:
      break;
  }
  REMUDA_ASSIGN(const pool::Applied applied, apply(caller, user, request, now_s));
  reply.answer.result = fields::write(applied);
  reply.watched = applied.job;
  return reply;
}

std::optional<Service::Reply> Service::answer(const Caller& caller, const policy::User& user,
                                              const wire::Request& request, double now_s, double asked_s) {
  if (request.ask == wire::Ask::machine && now_s - read_at_s_ >= kFresh_s) {
    is_due_ = is_due_ || !is_reading_;
    return std::nullopt;
  }
  if (request.operation && now_s < asked_s + kNamePatience_s && has_unknown_limits(caller, user, *request.operation))
    return std::nullopt;
  if (request.operation && (!is_fresh(now_s) || handover_.is_new())) {
    const auto* submission = std::get_if<pool::Submit>(&*request.operation);
    if (submission && !submission->waits && !known_request(caller, request)) {
      is_due_ = is_due_ || !is_reading_;
      return std::nullopt;
    }
  }
  // While other processes keep the database, changes wait, and nothing else waits for them: a keeper's word is heard at
  // once, and written later.
  const bool may_wait = request.operation && now_s < asked_s + kBusyPatience_s;
  if (may_wait && !is_of_keeper(*request.operation) && now_s < busy_until_s_) return std::nullopt;
  pool_.forget_failure();
  auto said = reply(caller, user, request, now_s);
  if (!said && may_wait && pool_.was_busy()) {
    busy_until_s_ = now_s + kBusyPause_s;
    return std::nullopt;
  }
  if (said && request.operation && is_of_keeper(*request.operation) &&
      holds_->has_word(job_of(*request.operation), now_s))
    return std::nullopt;  // an agent that was killed now would not know of it
  Reply reply = said ? std::move(*said) : Reply{};
  if (!said) {
    reply.answer.error = std::move(said.error());
    reply.answer.may_try_again = pool_.may_try_again();
  }
  reply.answer.id = request.id;
  return reply;
}

}  // namespace remuda::agent
