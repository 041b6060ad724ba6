#include "train/elastic_run.h"

#include <algorithm>
#include <numeric>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "train/device/device_ops.h"
#include "train/rank_environment.h"
#include "train/run_outputs.h"
#include "train/run_terms.h"

namespace remuda::train {

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
    const Result<void> ended = train(job::on_ranks(whole_job_, members_.ranks));
    if (ended ? !goes_on_after_the_end() : !goes_on_after(ended.error())) return ended;
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
  const int rank = options.rank;
  REMUDA_ASSIGN(std::unique_ptr<comm::Communicator> communicator, connect(std::move(options)));
  if (members_.generation == 0) connected_(rank);
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
  events_.send({{"event", "trained"}, {"rank", rank_}});
  REMUDA_TRY(trainer->write([&](const ValuesOf& values_of) {
    return outputs ? outputs->write(trainer->model(), *report, events_, values_of) : Result<void>();
  }));
  if (rank_ != 0) {
    options_.inherited = trainer->bequest();
    return {};
  }
  events_.send({{"event", "done"}, {"rank", rank_}, {"report", to_json(*report)}});
  if (!env::get(env::events_fd)) return write_all(STDOUT_FILENO, to_pretty(to_json(*report)), "the report");
  return {};
}

/// Whether this rank has trained, and goes on as rank 0 was lost before the run was done.
bool ElasticRun::goes_on_after_the_end() {
  if (rank_ == 0) return false;
  if (feed_.is_elastic()) {
    if (Result<Members> left = feed_.next()) {
      options_.inherited.lost_s = 0;
      go_on_with(std::move(*left));
      return true;
    }
  }
  events_.send({{"event", "done"}, {"rank", rank_}});
  return false;
}

/// Whether this rank is one of those that go on without one that was lost.
bool ElasticRun::goes_on_after(const Error& error) {
  // Before it has begun, the run may have a checkpoint to go on from that only some of its ranks know.
  if (!feed_.is_elastic() || !began_ || error.kind != ErrorKind::lost_peer) return false;
  const bool known = error.peer >= 0 && error.peer < static_cast<int>(members_.ranks.size());
  events_.send({{"event", "lost"},
                {"kind", "lost_peer"},
                {"message", error.message},
                {"peer", known ? members_.ranks[static_cast<size_t>(error.peer)] : -1}});
  Result<Members> left = feed_.next();
  if (!left) return false;
  go_on_with(std::move(*left));
  return true;
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
