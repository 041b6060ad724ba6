// How an ElasticRun takes in ranks that join it, and joins one.
#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "base/clock.h"
#include "base/host_port.h"
#include "base/text.h"
#include "comm/hosts.h"
#include "comm/wire.h"
#include "train/agreement.h"
#include "train/elastic_run.h"
#include "train/labels.h"
#include "train/rank_environment.h"

namespace remuda::train {
namespace {

constexpr double kVerdict_s = 60;  // beyond what the others have to agree
constexpr double kAnswer_s = 5;    // for a candidate to answer, which takes milliseconds
constexpr double kPartForLast =
    0.5;  // of the time in which the others come, for a candidate that begins later than rank 0

/// The device of one that comes, as the others call it; an error (usage) where it cannot be one of theirs.
Result<job::DeviceSpec> device_of(const Applicant& applicant, const job::TrainJob& members,
                                  const std::vector<Place>& places) {
  job::DeviceSpec device = applicant.device;
  if (applicant.place.host.empty() || applicant.place.host != comm::this_host())
    device.use += " on " + applicant.host_name;
  for (const job::DeviceSpec& other : members.devices)
    if (other.use == device.use && !(other.shared && device.shared)) return usage_error(job::named_twice(device.use));
  if (const std::string taken = cores_in_use(device.use, applicant.place, members.devices, places); !taken.empty())
    return usage_error(taken);
  job::TrainJob grown = members;
  grown.devices.push_back(device);
  if (const std::string missed = job::batch_too_small(grown); !missed.empty()) return usage_error(missed);
  return device;
}

/// Another rank comes behind those that were there.
void add_newcomer(Inheritance& inherited, const Invitation& invitation) {
  inherited.generation = invitation.members.generation;
  inherited.left.resize(invitation.members.ranks.size() - 1);
  std::iota(inherited.left.begin(), inherited.left.end(), size_t{0});
  inherited.left.push_back(Inheritance::kJoins);
  inherited.joins.push_back({.rank = invitation.number, .device = invitation.devices.back().use});
}

}  // namespace

Inheritance inherited_by_newcomer(const Invitation& invitation, double now_s) {
  Inheritance inherited{.losses = invitation.losses,
                        .joins = invitation.joins,
                        .kept = invitation.kept,
                        .began_s = now_s - invitation.run_s,
                        .lost_s = now_s};
  add_newcomer(inherited, invitation);
  return inherited;
}

size_t least_ranks(const job::TrainJob& whole) {
  const size_t all = whole.devices.size();
  return all - std::min(size_t(whole.elastic.ranks_lost), all - 1);
}

bool can_spare(int number, std::vector<int> ranks, const job::TrainJob& whole) {
  const std::vector<int> members = ranks;
  std::erase(ranks, number);
  const job::CheckpointSpec& kept = whole.checkpoint;
  const bool state_is_kept =
      whole.elastic.buddy || (!kept.folder.empty() && (kept.every_steps > 0 || kept.every_minutes > 0));
  return state_is_kept && ranks.size() >= least_ranks(whole) && quorum::is_quorum(ranks, members);
}

ElasticRun::ElasticRun(const job::TrainJob& own, const Events& events, const std::atomic<bool>& leave,
                       Newcomer newcomer, TrainerOptions options, Connected connected)
    : ElasticRun(newcomer.job_of(own), events, leave, MembersFeed(Fd()), std::move(options), std::move(connected)) {
  const Invitation& invitation = newcomer.invitation();
  members_ = invitation.members;
  number_ = invitation.number;
  run_id_ = invitation.run_id;
  options_.inherited = inherited_by_newcomer(invitation, monotonic_s());
  newcomer_ = std::move(newcomer);
  has_joined_ = true;
}

/// One that has joined, where the others can go on without it.
bool ElasticRun::may_leave_alone() const { return has_joined_ && can_spare(number_, members_.ranks, whole_job_); }

/// On the first rank, where the job lets others join. Another one than the first listens at its own address, where it
/// can.
Result<void> ElasticRun::listen_for_joins() {
  if (rank_ != 0 || join_listener_ || whole_job_.elastic.join.empty()) return {};
  REMUDA_ASSIGN(comm::ConnectOptions options, connect_options_of_any());
  const std::optional<HostPort> asked = parse_host_port(whole_job_.elastic.join);
  options.master_address = asked->host.empty() || number_ != 0 ? options.bind_address : asked->host;
  options.master_port = asked->port;
  options.terms = terms_of_join(whole_job_);
  // The others wait for rank 0 while it waits for a candidate, who must not make them take it for lost.
  options.timeout_s = std::min(kAnswer_s, whole_job_.elastic.timeout_s / 5);
  if (whole_job_.train.encrypt == job::Switch::off) options.encryption = comm::Encryption::off;
  const std::string address = comm::Endpoint{options.master_address, options.master_port}.text();
  auto listener = JoinListener::open(std::move(options), events_);
  if (!listener && members_.generation == 0) return tl::unexpected(listener.error());
  if (listener) {
    join_listener_ = std::move(*listener);
    events_.send({{"event", "door"}, {"address", address}});
  } else {
    events_.send({{"event", "note"}, {"text", "nobody can join the run any more: " + listener.error().message}});
  }
  return {};
}

/// Collective, between two steps. Goes on with one that waits; where it has gone meanwhile, as before.
Result<ElasticRun::Next> ElasticRun::grow() {
  std::optional<Candidate> candidate;
  Result<std::optional<Invitation>> invited = invite(candidate);
  if (invited && !*invited) return Next::go_on;
  const Result<void> kept = invited ? session_->trainer->keep_state() : tl::unexpected(invited.error());
  options_.inherited = session_->trainer->bequest();
  session_.reset();
  if (kept) return grow_with(**invited, candidate ? &*candidate : nullptr);
  REMUDA_ASSIGN(const Next next, after(kept.error()));
  if (next == Next::end) return tl::unexpected(kept.error());
  return next;
}

/// Collective. All hear from rank 0 who comes; nothing: nobody.
Result<std::optional<Invitation>> ElasticRun::invite(std::optional<Candidate>& candidate) {
  std::optional<Invitation> made;
  Fd listener;
  if (rank_ == 0) candidate = join_listener_->take();
  if (candidate) made = invitation_for(*candidate, listener);
  REMUDA_ASSIGN(const std::string text,
                share_text(*session_->communicator, 0, made ? to_text(*made) : "", label::kJoin));
  if (text.empty()) return std::nullopt;
  REMUDA_ASSIGN(Invitation invitation, parse_invitation(text));
  invitation.members.listen_fd = listener.release();
  return invitation;
}

/// Rank 0: for one that has said that it comes.
std::optional<Invitation> ElasticRun::invitation_for(Candidate& candidate, Fd& listener) const {
  const auto device = device_of(candidate.applicant(), *session_->job, session_->places);
  if (!device) {
    candidate.turn_away(JoinSignal::refused, device.error().message);
    events_.send({{"event", "note"},
                  {"text", printable(fmt::format("{} cannot join: {}", candidate.applicant().device.use,
                                                 device.error().message))}});
    return std::nullopt;
  }
  const auto options = connect_options_of_any();
  auto meeting = options ? comm::listen_on({options->bind_address, 0}) : tl::unexpected(options.error());
  if (!meeting) return candidate.turn_away(JoinSignal::failed, meeting.error().message), std::nullopt;
  listener = std::move(*meeting);
  Inheritance known = session_->trainer->bequest();
  Invitation invitation{.number = static_cast<int>(whole_job_.devices.size()),
                        .members = {.generation = members_.generation + 1,
                                    .ranks = members_.ranks,
                                    .address = comm::local_endpoint(listener.get()).address,
                                    .port = comm::local_endpoint(listener.get()).port},
                        .devices = whole_job_.devices,
                        .join = whole_job_.elastic.join,
                        .resume = whole_job_.checkpoint.resume == job::Switch::on,
                        .run_id = run_id_,
                        .run_s = monotonic_s() - known.began_s,
                        .kept = std::move(known.kept),
                        .losses = std::move(known.losses),
                        .joins = std::move(known.joins)};
  invitation.members.ranks.push_back(invitation.number);
  invitation.devices.push_back(*device);
  if (!candidate.invite(invitation)) return std::nullopt;
  return invitation;
}

/// Those that were there before go on with the newcomer if all of them can, and else without it.
Result<ElasticRun::Next> ElasticRun::grow_with(const Invitation& invitation, const Candidate* candidate) {
  const int number = invitation.number;
  TrainerOptions options = options_;
  options.step_times_fd = -1;  // the file is of the ranks that began
  add_newcomer(options.inherited, invitation);
  RankJoin join = options.inherited.joins.back();
  job::TrainJob whole = whole_job_;
  whole.devices = invitation.devices;
  Result<Session> grown =
      begin(job::on_ranks(std::move(whole), invitation.members.ranks), invitation.members, options, true);
  if (grown && candidate)
    if (const auto there = candidate->is_ready(kPartForLast * notice_s_); !there) grown = tl::unexpected(there.error());
  auto agreement = membership_->agree({.generation = members_.generation,
                                       .members = members_.ranks,
                                       .least = least_ranks(whole_job_),
                                       .notice_s = notice_s_,
                                       .newcomer = number,
                                       .welcomes = grown.has_value()});
  const bool is_taken = grown && agreement && agreement->ranks.back() == number;
  if (!grown)
    join.failed = grown.error().message;
  else if (!is_taken)
    join.failed = "another rank could not go on with it";
  if (candidate) is_taken ? candidate->take_in() : candidate->turn_away(JoinSignal::failed, join.failed);
  if (!agreement) return tl::unexpected(agreement.error());
  if (is_taken) {
    take_in(std::move(*grown), invitation);
    return Next::go_on;
  }
  grown = failed(join.failed);  // what there is of it goes before they meet anew
  options_.inherited.joins.push_back(join);
  if (rank_ == 0)
    events_.send({{"event", "note"}, {"text", fmt::format("{} was not taken in: {}", join.device, join.failed)}});
  go_on_with(members_of(std::move(*agreement)));
  return Next::go_on;
}

/// From now on the members are those of the invitation.
void ElasticRun::take_in(Session session, const Invitation& invitation) {
  members_ = invitation.members;
  whole_job_.devices = invitation.devices;
  options_.step_times_fd = -1;
  take(std::move(session));
  Json devices = Json::array();
  for (const job::DeviceSpec& device : invitation.devices) devices.push_back(device.use);
  const RankJoin join = session_->trainer->last_join();
  events_.send({{"event", "joined"},
                {"generation", members_.generation},
                {"rank", invitation.number},
                {"ranks", members_.ranks},
                {"devices", std::move(devices)},
                {"step", join.step},
                {"seconds", join.seconds}});
  const std::string shared =
      cores_shared(join.device, session_->places.back(), session_->job->devices, session_->places);
  if (!shared.empty() && (rank_ == 0 || newcomer_)) events_.send({{"event", "note"}, {"text", shared}});
}

/// As a newcomer: until the others have agreed to go on with this rank. Where rank 0 is lost before it can say so, the
/// first step finds that out, as any step does.
Result<void> ElasticRun::join() {
  REMUDA_ASSIGN(Session session, begin(job::on_ranks(whole_job_, members_.ranks), members_, options_, true));
  connected_(session.communicator->rank(), false);  // what rank 0 hears next is that it stays
  REMUDA_TRY(newcomer_->wait_to_be_taken_in(2 * notice_s_ + kVerdict_s));
  take_in(std::move(session), newcomer_->invitation());
  newcomer_.reset();
  return {};
}

}  // namespace remuda::train
