#include "train/elastic_run.h"

#include <algorithm>
#include <numeric>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "train/device/device_ops.h"
#include "train/labels.h"
#include "train/rank_environment.h"
#include "train/run_outputs.h"
#include "train/run_terms.h"

namespace remuda::train {
namespace {

constexpr double kLongestFarewell_s = 3600;  // of what rank 0 leaves behind
constexpr double kMargin_s = 30;             // from when ranks should meet, until they begin to

}  // namespace

ElasticRun::ElasticRun(const job::TrainJob& job, const Events& events, const std::atomic<bool>& leave, MembersFeed feed,
                       TrainerOptions options, std::function<void(int rank)> connected)
    : whole_job_(job),
      events_(events),
      leave_(leave),
      feed_(std::move(feed)),
      options_(std::move(options)),
      connected_(std::move(connected)) {
  members_.ranks.resize(job.devices.size());
  std::iota(members_.ranks.begin(), members_.ranks.end(), 0);
}

Result<void> ElasticRun::run() {
  for (;;) {
    Result<void> ended = train(job::on_ranks(whole_job_, members_.ranks));
    REMUDA_ASSIGN(const Next next, ended ? after_the_end() : after(ended.error()));
    if (next == Next::end) return ended;
    if (next == Next::done) return finish(), Result<void>();
    if (const auto ops = DeviceOps::open(options_.device)) ops->empty_cache();  // what the last trainer has freed
  }
}

Result<std::unique_ptr<comm::Communicator>> ElasticRun::meet(const job::TrainJob& job) {
  const int all = static_cast<int>(whole_job_.devices.size());
  REMUDA_ASSIGN(comm::ConnectOptions options,
                members_.generation == 0 ? connect_options(all) : connect_options(all, members_));
  if (options.size > 1) options.terms = terms_of(job);
  options.terms.push_back({"how often ranks were lost", std::to_string(members_.generation)});
  if (job.train.encrypt == job::Switch::off) options.encryption = comm::Encryption::off;
  options.streams = job.train.streams;
  // Until the ranks know how long a step takes: what they do before may take longer than a step may.
  options.timeout_s = std::max(options.timeout_s, job.elastic.timeout_s);
  notice_s_ = std::max(job.elastic.timeout_s, options.connect_timeout_s + kMargin_s);
  const int rank = options.rank;
  const std::string address = options.bind_address, secret = options.secret;
  REMUDA_ASSIGN(std::unique_ptr<comm::Communicator> communicator, connect(std::move(options)));
  if (members_.generation > 0) return communicator;
  connected_(rank);
  if (feed_.is_elastic() || job.elastic.ranks_lost == 0 || communicator->size() == 1) return communicator;
  REMUDA_ASSIGN(quorum::Assembly assembly, quorum::Assembly::found(*communicator, address, secret, label::kAssembly));
  assembly_.emplace(std::move(assembly));
  return communicator;
}

Result<void> ElasticRun::train(const job::TrainJob& job) {
  REMUDA_ASSIGN(const std::unique_ptr<comm::Communicator> communicator, meet(job));
  rank_ = communicator->rank();
  REMUDA_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::create(job, *communicator, events_, leave_, options_));
  options_.inherited.copies.clear();  // the trainer has them
  std::optional<RunOutputs> outputs;
  if (rank_ == 0) {
    REMUDA_ASSIGN(RunOutputs created, RunOutputs::create(job, trainer->model()));
    outputs.emplace(std::move(created));
  }
  began_ = true;
  trained_with_ = members_.ranks;
  Result<RunReport> report = trainer->run();
  if (!report) {
    options_.inherited = trainer->bequest();
    return tl::unexpected(report.error());
  }
  if (rank_ == 0 || !assembly_) events_.send({{"event", "trained"}, {"rank", rank_}});
  REMUDA_TRY(trainer->write([&](const ValuesOf& values_of) {
    return outputs ? outputs->write(trainer->model(), *report, events_, values_of) : Result<void>();
  }));
  if (rank_ != 0) {
    options_.inherited = trainer->bequest();
    options_.inherited.lost_s = 0;  // nobody is, as yet
    return say_farewell(*communicator);
  }
  events_.send({{"event", "done"}, {"rank", rank_}, {"report", to_json(*report)}});
  if (!env::get(env::events_fd)) REMUDA_TRY(write_all(STDOUT_FILENO, to_pretty(to_json(*report)), "the report"));
  return say_farewell(*communicator);
}

/// Collective, where no launcher tells the others that rank 0 is done. It leaves once all have heard it.
Result<void> ElasticRun::say_farewell(comm::Communicator& communicator) {
  if (!assembly_) return {};
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
  if (rank_ == 0 || assembly_ || !feed_.is_elastic()) return Next::done;
  REMUDA_ASSIGN(const Next next, hear_who_is_left());
  return next == Next::go_on ? next : Next::done;
}

/// Whether this rank is one of those that go on without one that was lost.
Result<ElasticRun::Next> ElasticRun::after(const Error& error) {
  // Before it has begun, the run may have a checkpoint to go on from that only some of its ranks know.
  if (!began_ || error.kind != ErrorKind::lost_peer) return Next::end;
  if (assembly_) return agree(error, false);
  if (!feed_.is_elastic()) return Next::end;
  events_.send({{"event", "lost"}, {"kind", "lost_peer"}, {"message", error.message}, {"peer", first_number(error)}});
  return hear_who_is_left();
}

Result<ElasticRun::Next> ElasticRun::hear_who_is_left() {
  Result<Members> left = feed_.next();
  if (!left) return Next::end;
  go_on_with(std::move(*left));
  return Next::go_on;
}

/// With the others, as nobody is above the ranks.
Result<ElasticRun::Next> ElasticRun::agree(const Error& error, bool is_done) {
  const size_t most_lost = std::min(size_t(whole_job_.elastic.ranks_lost), whole_job_.devices.size() - 1);
  REMUDA_ASSIGN(quorum::Agreement agreement, assembly_->agree({.generation = members_.generation,
                                                               .members = members_.ranks,
                                                               .least = whole_job_.devices.size() - most_lost,
                                                               .notice_s = notice_s_,
                                                               .lost = {first_number(error), error.message},
                                                               .is_done = is_done}));
  if (agreement.is_done) return Next::done;
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
  events_.send({{"event", "left"}, {"ranks", left.ranks}, {"lost", std::move(lost)}});
  go_on_with(std::move(left));
  return Next::go_on;
}

/// The rank that was lost, by its first number, or -1.
int ElasticRun::first_number(const Error& error) const {
  const bool known = error.peer >= 0 && error.peer < static_cast<int>(members_.ranks.size());
  return known ? members_.ranks[static_cast<size_t>(error.peer)] : -1;
}

/// What rank 0 has said itself, with the report.
void ElasticRun::finish() {
  if (rank_ == 0) return;
  if (assembly_) events_.send({{"event", "trained"}, {"rank", rank_}});
  events_.send({{"event", "done"}, {"rank", rank_}});
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
