#include "train/elastic_run.h"

#include <algorithm>
#include <numeric>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "train/device/device_ops.h"
#include "train/labels.h"
#include "train/rank_environment.h"
#include "train/run_terms.h"

namespace remuda::train {
namespace {

constexpr double kLongestFarewell_s = 3600;   // of what rank 0 leaves behind
constexpr double kMargin_s = 30;              // from when ranks should meet, until they begin to
constexpr double kPartForNewcomer = 1.0 / 3;  // of the time that starting takes: all run already, and wait for one

}  // namespace

ElasticRun::ElasticRun(job::TrainJob job, const Events& events, const std::atomic<bool>& leave, MembersFeed feed,
                       TrainerOptions options, Connected connected)
    : whole_job_(std::move(job)),
      events_(events),
      leave_(leave),
      feed_(std::move(feed)),
      options_(std::move(options)),
      connected_(std::move(connected)),
      run_id_(env::get(env::run_id).value_or("")) {
  members_.ranks.resize(whole_job_.devices.size());
  std::iota(members_.ranks.begin(), members_.ranks.end(), 0);
  options_.has_candidate = [this] { return join_listener_ && join_listener_->has_candidate(); };
}

Result<void> ElasticRun::run() {
  if (newcomer_) REMUDA_TRY(join());
  for (;;) {
    const Result<bool> is_whole = train();
    Result<Next> next = Next::end;
    if (!is_whole)
      next = after(is_whole.error());
    else
      next = *is_whole ? after_the_end() : grow();
    if (!next) return tl::unexpected(next.error());
    if (*next == Next::end) return tl::unexpected(is_whole.error());
    if (*next == Next::done) return finish(), Result<void>();
    if (session_) continue;
    if (const auto ops = DeviceOps::open(options_.device)) ops->empty_cache();  // what the last trainer has freed
  }
}

Result<std::unique_ptr<comm::Communicator>> ElasticRun::meet(const job::TrainJob& job, const Members& members,
                                                             bool with_newcomer) {
  const bool is_start = members.generation == 0;
  REMUDA_ASSIGN(comm::ConnectOptions options, is_start ? connect_options(static_cast<int>(whole_job_.devices.size()))
                                                       : connect_options(members, number_));
  if (is_start) number_ = options.rank;
  if (options.size > 1) options.terms = terms_of(job, run_id_);
  options.terms.push_back({"how often the ranks changed", std::to_string(members.generation)});
  if (job.train.encrypt == job::Switch::off) options.encryption = comm::Encryption::off;
  options.streams = job.train.streams;
  // Until the ranks know how long a step takes: what they do before may take longer than a step may.
  options.timeout_s = std::max(options.timeout_s, job.elastic.timeout_s);
  notice_s_ = std::max(job.elastic.timeout_s, options.connect_timeout_s + kMargin_s);
  if (with_newcomer) options.connect_timeout_s *= kPartForNewcomer;
  const int rank = options.rank;
  REMUDA_ASSIGN(std::unique_ptr<comm::Communicator> communicator, connect(std::move(options)));
  if (!std::exchange(is_ready_, true)) connected_(rank, newcomer_.has_value());
  return communicator;
}

/// Collective, of all members. Where these are new, and nobody is above them, they have a membership.
Result<ElasticRun::Session> ElasticRun::begin(job::TrainJob job, const Members& members, const TrainerOptions& options,
                                              bool are_new) {
  Session session{.job = std::make_unique<const job::TrainJob>(std::move(job))};
  REMUDA_ASSIGN(session.communicator, meet(*session.job, members, are_new && members.generation > 0));
  const bool may_change =
      !whole_job_.elastic.join.empty() || (whole_job_.elastic.ranks_lost > 0 && session.communicator->size() > 1);
  if (are_new && may_change && !feed_.is_elastic()) {
    REMUDA_ASSIGN(const comm::ConnectOptions own, connect_options_of_any());
    REMUDA_ASSIGN(session.membership, quorum::Membership::found(*session.communicator, members.ranks, own.bind_address,
                                                                own.secret, label::kAssembly));
  }
  if (!whole_job_.elastic.join.empty()) {
    REMUDA_ASSIGN(session.places, places_of_all(*session.communicator));
  }
  REMUDA_ASSIGN(session.trainer, Trainer::create(*session.job, *session.communicator, events_, leave_, options));
  if (session.communicator->rank() == 0) {
    REMUDA_ASSIGN(RunOutputs created,
                  RunOutputs::create(*session.job, session.trainer->model(), options_.write_pause_s));
    session.outputs.emplace(std::move(created));
  }
  return session;
}

/// Of the members.
void ElasticRun::take(Session session) {
  if (session.membership) membership_ = std::move(session.membership);
  session_.emplace(std::move(session));
  options_.inherited.copies.clear();  // the trainer has them
  rank_ = session_->communicator->rank();
  trained_with_ = members_.ranks;
  began_ = true;
  connected_(rank_, may_leave_alone());
}

/// Whether this rank has made all steps, or returns between two of them, as somebody waits to join.
Result<bool> ElasticRun::train() {
  if (!session_) {
    const bool is_start = members_.generation == 0;
    REMUDA_ASSIGN(Session session, begin(job::on_ranks(whole_job_, members_.ranks), members_, options_, is_start));
    take(std::move(session));
    REMUDA_TRY(listen_for_joins());
  }
  Result<bool> is_whole = work();
  if (!is_whole || *is_whole) session_.reset();
  return is_whole;
}

Result<bool> ElasticRun::work() {
  Trainer& trainer = *session_->trainer;
  Result<RunReport> report = trainer.run();
  if (!report) {
    options_.inherited = trainer.bequest();
    return tl::unexpected(report.error());
  }
  if (trainer.is_interrupted()) return false;
  was_stopped_ = report->stopped;
  join_listener_.reset();
  if (rank_ == 0 || !membership_) events_.send({{"event", "trained"}, {"rank", rank_}});
  REMUDA_TRY(trainer.write([&](const ValuesOf& values_of) {
    return session_->outputs ? session_->outputs->write(trainer.model(), *report, events_, values_of) : Result<void>();
  }));
  if (rank_ != 0) {
    options_.inherited = trainer.bequest();
    options_.inherited.lost_s = 0;  // nobody is, as yet
    REMUDA_TRY(say_farewell(*session_->communicator));
    return true;
  }
  events_.send({{"event", "done"}, {"rank", rank_}, {"stopped", was_stopped_}, {"report", to_json(*report)}});
  const bool has_launcher = env::get(env::events_fd).has_value();  // which gets the report, and judges it
  if (!has_launcher) REMUDA_TRY(write_all(STDOUT_FILENO, to_pretty(to_json(*report)), "the report"));
  REMUDA_TRY(say_farewell(*session_->communicator));
  const std::string useless = report->not_finite();
  if (!has_launcher && !was_stopped_ && !useless.empty()) return failed(useless);
  if (!has_launcher && !report->unwritten.empty()) return failed(job::unwritten_text(report->unwritten));
  return true;
}

/// Collective, where no launcher tells the others that rank 0 is done. It leaves once all have heard it.
Result<void> ElasticRun::say_farewell(comm::Communicator& communicator) {
  if (!membership_) return {};
  communicator.set_timeout(kLongestFarewell_s);  // its death would show at once
  std::byte nothing{};
  Result<void> said = communicator.broadcast(std::span(&nothing, 1), 0, label::kFarewell);
  if (!said && rank_ != 0) return said;
  if (said) said = communicator.barrier(label::kFarewell);
  if (!said && rank_ == 0) (void)agree(said.error(), true);  // the run is done, whatever becomes of the others
  return {};
}

/// This rank has made all steps, and may have to go on as rank 0 was lost before the run was done.
Result<ElasticRun::Next> ElasticRun::after_the_end() {
  if (rank_ == 0 || membership_ || !feed_.is_elastic()) return Next::done;
  REMUDA_ASSIGN(const Next next, receive_members());
  return next == Next::go_on ? next : Next::done;
}

/// Whether this rank is one of those that go on without one that was lost.
Result<ElasticRun::Next> ElasticRun::after(const Error& error) {
  // Before it has begun, the run may have a checkpoint to go on from that only some of its ranks know.
  if (!began_ || error.kind != ErrorKind::lost_peer) return Next::end;
  if (membership_) return whole_job_.elastic.ranks_lost > 0 ? agree(error, false) : Result<Next>(Next::end);
  if (!feed_.is_elastic()) return Next::end;
  events_.send({{"event", "lost"}, {"kind", "lost_peer"}, {"message", error.message}, {"peer", first_number(error)}});
  return receive_members();
}

Result<ElasticRun::Next> ElasticRun::receive_members() {
  Result<Members> left = feed_.next();
  if (!left) return Next::end;
  go_on_with(std::move(*left));
  return Next::go_on;
}

/// With the others, as nobody is above the ranks.
Result<ElasticRun::Next> ElasticRun::agree(const Error& error, bool is_done) {
  REMUDA_ASSIGN(quorum::Agreement agreement, membership_->agree({.generation = members_.generation,
                                                                 .members = members_.ranks,
                                                                 .least = least_ranks(whole_job_),
                                                                 .notice_s = notice_s_,
                                                                 .lost = {first_number(error), error.message},
                                                                 .is_done = is_done}));
  if (agreement.is_done) return Next::done;
  go_on_with(members_of(std::move(agreement)));
  return Next::go_on;
}

/// Says who is lost, where somebody is.
Members ElasticRun::members_of(quorum::Agreement agreement) {
  Members left{.generation = members_.generation + 1,
               .ranks = std::move(agreement.ranks),
               .address = std::move(agreement.meeting.address),
               .port = agreement.meeting.port,
               .listen_fd = agreement.listener.release()};
  Json lost = Json::array();
  for (quorum::Lost& one : agreement.lost) {
    const std::string& device = whole_job_.devices.at(size_t(one.rank)).use;
    lost.push_back({{"rank", one.rank}, {"device", device}, {"cause", one.cause}});
    left.lost.push_back({.rank = one.rank, .device = device, .cause = std::move(one.cause)});
  }
  if (!lost.empty())
    events_.send({{"event", "left"}, {"generation", left.generation}, {"ranks", left.ranks}, {"lost", lost}});
  return left;
}

/// The rank that was lost, by its first number, or -1.
int ElasticRun::first_number(const Error& error) const {
  const bool known = error.peer >= 0 && error.peer < static_cast<int>(members_.ranks.size());
  return known ? members_.ranks[static_cast<size_t>(error.peer)] : -1;
}

/// What rank 0 has said itself, with the report.
void ElasticRun::finish() {
  if (rank_ == 0) return;
  if (membership_) events_.send({{"event", "trained"}, {"rank", rank_}});
  events_.send({{"event", "done"}, {"rank", rank_}, {"stopped", was_stopped_}});
}

void ElasticRun::go_on_with(Members left) {
  members_ = std::move(left);
  Inheritance& inherited = options_.inherited;
  inherited.generation = members_.generation;
  inherited.left.clear();
  for (const int rank : members_.ranks)
    inherited.left.push_back(size_t(std::ranges::find(trained_with_, rank) - trained_with_.begin()));
  if (inherited.lost_s == 0) inherited.lost_s = monotonic_s();  // no trainer was there that could say so
  inherited.losses.insert(inherited.losses.end(), members_.lost.begin(), members_.lost.end());
  options_.step_times_fd = -1;  // the file is of the ranks that began
}

}  // namespace remuda::train
