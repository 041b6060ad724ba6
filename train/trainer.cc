#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "base/clock.h"
#include "train/device/random_state.h"
#include "train/evaluate.h"
#include "train/labels.h"
#include "train/model/make_model.h"
#include "train/weights.h"

namespace remuda::train {
namespace {

constexpr int kUntimedSteps = 3;        ///< caches and allocator settle
constexpr int kMostSkippedInARow = 10;  ///< then the run is beyond recovery
constexpr double kReportEvery_s = 0.25;

// The timeout for a rank that does not join a collective call: this many steps of the slowest device, and at least the
// communicator's usual timeout.
constexpr double kPatienceSteps = 20;
const double kLeastPatience_s = comm::ConnectOptions().timeout_s;

balance::BalanceOptions balance_options(const job::TrainJob& job) {
  balance::BalanceOptions options;
  options.policy = job.balance.policy;
  options.global_batch = job.train.global_batch;
  options.weights = job.balance.shares;
  options.names = job::device_names(job);
  options.bounds.assign(job.devices.size(), balance::Bounds{0, job.train.global_batch});
  return options;
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::create(const job::TrainJob& job, comm::Communicator& communicator,
                                                 const Events& events, const std::atomic<bool>& leave,
                                                 TrainerOptions options) {
  REMUDA_ASSIGN(const DeviceOps ops, DeviceOps::open(options.device));
  REMUDA_ASSIGN(Samples train, Samples::open(job.data, data::Split::train, job.model, job.train.seed));
  REMUDA_TRY(train.share_cache(communicator));
  std::optional<Samples> test;
  if (job.data.test) {
    REMUDA_ASSIGN(test, Samples::open(job.data, data::Split::test, job.model));
    REMUDA_TRY(test->share_cache(communicator));
  }
  configure_arithmetic(job.train);
  torch::manual_seed(job.train.seed);
  REMUDA_ASSIGN(std::unique_ptr<Model> model, make_model(job.model, train.model_input(), job.memory.recompute));
  if (!job.model.weights.empty()) REMUDA_TRY(load_weights(*model, job.model.weights));
  model->to(options.device);
  std::unique_ptr<Trainer> trainer(
      new Trainer(job, communicator, events, leave, options, ops, std::move(train), std::move(test), std::move(model)));
  REMUDA_TRY(trainer->prepare());
  REMUDA_TRY(trainer->start_balance());
  torch::manual_seed(job.train.seed + 1 + uint64_t(communicator.rank()));
  return trainer;
}

Trainer::Trainer(const job::TrainJob& job, comm::Communicator& communicator, const Events& events,
                 const std::atomic<bool>& leave, TrainerOptions options, const DeviceOps& ops, Samples train,
                 std::optional<Samples> test, std::unique_ptr<Model> model)
    : job_(job),
      communicator_(communicator),
      events_(events),
      leave_(leave),
      options_(options),
      ops_(ops),
      train_(std::move(train)),
      test_(std::move(test)),
      model_(std::move(model)),
      compute_type_(compute_type(job.train.precision, ops.device(), model_->parameters().at(0).scalar_type())),
      pace_(job.devices[communicator.rank()].slowdown, steady_clock()),
      local_(*model_, ops_, pace_, {job.model.loss, job.data.padding, compute_type_, size_t(job.memory.accumulate)}),
      batches_(train_, {job.train.seed, job.train.global_batch, communicator.rank(),
                        uint64_t(job.train.epochs) * train_.size(), loader_threads(job.data)}),
      balancer_(balance_options(job)),
      trace_(communicator.rank() == 0 ? options.trace_fd : -1) {
  model_->set_training(true);
  report_.policy = job.balance.policy;
  report_.seed = job.train.seed;
  report_.transport = communicator.transport();
}

Result<void> Trainer::prepare() {
  REMUDA_ASSIGN(const Batch one, train_.gather(std::vector<uint64_t>{0}));
  REMUDA_TRY(local_.check_model(job_.model.path.empty() ? job_.model.name : job_.model.path, one,
                                train_.model_input().classes));
  REMUDA_ASSIGN(const auto precisions, agree_on_precision(communicator_, job_.train.precision, compute_type_));
  for (int rank = 0; rank < communicator_.size(); ++rank)
    report_.devices.push_back({.device = job_.devices[rank], .precision = precisions[rank]});
  report_.sent_as = model_->parameters().at(0).scalar_type();
  if (communicator_.size() > 1) report_.sent_as = common_short_type(precisions).value_or(report_.sent_as);
  const ParallelOptions options{.bucket_bytes = job_.train.bucket_mib * (1 << 20),
                                .rule = rule_of(job_.train),
                                .group_of = groups_of(job_.train, model_->parameters()),
                                .clip_norm = job_.train.clip_norm,
                                .average = job_.train.average,
                                .state_shares = job_.balance.state_shares,
                                .ranks_on_device = job::ranks_on_device_of(job_, communicator_.rank()),
                                .sent_as = report_.sent_as,
                                .before_send = [this] { pace_.stretch(); },
                                .before_wait = [this] { add_compute(pace_.stop()); }};
  REMUDA_ASSIGN(parallel_, DataParallel::create(
                               communicator_, ops_, model_->parameters(), [&] { local_.run_alone(one); }, options));
  return {};
}

Result<AloneTimes> Trainer::alone_times() {
  return measure_devices({job_, communicator_, events_, leave_, train_, *model_, local_, pace_, *parallel_});
}

Result<void> Trainer::start_balance() {
  REMUDA_ASSIGN(AloneTimes times, alone_times());
  report_.stopped = times.leaving;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    for (const auto& time : times.by_rank[rank])
      if (std::isfinite(time.seconds)) balancer_.calibrate(rank, time.batch, time.seconds);
    report_.devices[rank].alone_measurements = {alone_samples_per_s(times.by_rank[rank])};
  }
  begin_trace(times.by_rank);
  REMUDA_ASSIGN(const balance::BalanceDecision first, balancer_.start());
  record(first);
  shares_ = balancer_.shares();
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(shares_)), 0, label::kShares));
  wait_for_steps_of(first.predicted_step_s);
  return {};
}

/// All ranks know the same times, and so wait equally long.
void Trainer::wait_for_steps_of(double seconds) {
  parallel_->set_timeout(std::max(kLeastPatience_s, kPatienceSteps * seconds));
}

/// Collective. At the end of a run that was long enough for the devices' speeds to have changed since its start, by
/// warming up for example: their speed alone is the mean of both measurements.
Result<void> Trainer::measure_again(double run_s) {
  bool again = is_first() && !report_.stopped && run_s > options_.measure_again_after_s;
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(&again, 1)), 0, label::kMeasureAgain));
  if (!again) return {};
  REMUDA_ASSIGN(AloneTimes times, alone_times());
  if (times.leaving) return {};  // the user asked to stop, and the run is complete
  for (int rank = 0; rank < communicator_.size(); ++rank)
    report_.devices[rank].alone_measurements.push_back(alone_samples_per_s(times.by_rank[rank]));
  return {};
}

void Trainer::begin_trace(const std::vector<std::vector<balance::BatchTime>>& alone) {
  if (!trace_.active()) return;
  balance::TraceHead head{job_.train.global_batch, {}};
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    auto& device = head.devices.emplace_back(balance::TraceDevice{job_.devices[rank].use, job_.devices[rank].slowdown});
    for (const auto& time : alone[rank])
      if (std::isfinite(time.seconds)) device.alone.push_back(time);
  }
  trace_.begin(head);
}

Result<RunReport> Trainer::run() {
  const double start = monotonic_s();
  for (epoch_ = 1; epoch_ <= job_.train.epochs && !done(); ++epoch_) {
    REMUDA_TRY(run_epoch(epoch_));
    REMUDA_TRY(end_epoch(epoch_));
  }
  REMUDA_TRY(parallel_->check_parameters(report_.steps));
  REMUDA_TRY(parallel_->swap_average());  // what is left of the run
  REMUDA_TRY(parallel_->send_unrounded());
  REMUDA_TRY(average_buffers(communicator_, *model_, samples_since_average_));
  REMUDA_TRY(collect_totals());
  report_.share_changes = balancer_.changes();
  report_.seconds = monotonic_s() - start;
  REMUDA_TRY(measure_again(report_.seconds));
  return report_;
}

Result<void> Trainer::run_epoch(int epoch) {
  epoch_loss_ = epoch_weight_ = 0;
  for (uint64_t end = uint64_t(epoch) * train_.size(), position = end - train_.size(); position < end && !done();) {
    const int size = batches_.step_size(position);
    const double start = monotonic_s();
    REMUDA_TRY(run_step(position));
    position += uint64_t(size);
    if (report_.steps > kUntimedSteps) {
      report_.timed_s += monotonic_s() - start;
      report_.timed_samples += size;
    }
  }
  return {};
}

Result<void> Trainer::run_step(uint64_t position) {
  const RandomState random(ops_.device());
  for (;;) {
    const auto parts = batches_.parts(position, shares_);
    REMUDA_ASSIGN(const ReducedStep step, attempt_step(position));
    const int starved = step.totals.first_with(kOutOfMemory);
    if (starved >= 0) {
      REMUDA_TRY(shrink_share(starved));
      random.restore();
      last_parts_.clear();
      continue;
    }
    trace(step.totals);
    if (is_first() && last_parts_ == balancer_.shares()) observe(step.totals);
    last_parts_ = parts;
    shares_ = step.totals.next_shares;
    mine_.samples += parts[communicator_.rank()];
    samples_since_average_ += parts[communicator_.rank()];
    return apply(step);
  }
}

Result<ReducedStep> Trainer::attempt_step(uint64_t position) {
  StepReport report{.compute_s = last_compute_s_, .wait_s = last_wait_s_};
  if (is_first()) report.next_shares = balancer_.shares();
  last_compute_s_ = 0;
  REMUDA_ASSIGN(const Batch batch, batches_.take(position, shares_));
  mine_.data_wait_s += batches_.waited_s();
  add_compute(batches_.waited_s());
  const double loss_units = double(job_.train.global_batch) * std::max(1, train_.model_input().context);
  add_compute(local_.run(batch, std::move(report), *parallel_, loss_scale_.of(compute_type_, loss_units)));
  if (leave_) parallel_->report().status |= kLeaving;
  auto step = parallel_->reduce();
  last_wait_s_ = parallel_->wait_s();
  mine_.wait_s += last_wait_s_;
  return step;
}

bool Trainer::any_computes_in(torch::ScalarType type) const {
  return std::ranges::find(report_.devices, type, &DeviceReport::precision) != report_.devices.end();
}

void Trainer::add_compute(double seconds) {
  last_compute_s_ += seconds;
  mine_.compute_s += seconds;
}

/// A rank ran out of memory: it gets less, the others more, and the step is repeated.
Result<void> Trainer::shrink_share(int rank) {
  const int share = shares_[rank];
  if (share <= 1)
    return failed(fmt::format("rank {} ({}) ran out of memory with a single sample; use a smaller model", rank,
                              job_.devices[rank].use));
  REMUDA_ASSIGN(const balance::BalanceDecision decision, balancer_.limit(report_.steps, rank, share * 3 / 4));
  record(decision);
  shares_ = balancer_.shares();
  return communicator_.broadcast(std::as_writable_bytes(std::span(shares_)), 0, label::kShares);
}

Result<void> Trainer::apply(const ReducedStep& step) {
  ++report_.steps;
  const auto& totals = step.totals;
  const bool scale_may_help = loss_scale_.update(step.finite) && any_computes_in(torch::kHalf);
  if (step.stands) {
    pace_.start();
    REMUDA_TRY(parallel_->update(step, settings_of(job_.train, report_.steps - 1, steps_in_all())));
    last_wait_s_ += parallel_->wait_s();
    mine_.wait_s += parallel_->wait_s();
    epoch_loss_ += totals.loss_sum;
    epoch_weight_ += totals.weight;
    skipped_in_a_row_ = 0;
  } else {
    ++report_.skipped_steps;
    if (!scale_may_help && ++skipped_in_a_row_ > kMostSkippedInARow)
      return failed(
          fmt::format("loss or gradients were not finite in {} steps in a row, up to step {}; a smaller "
                      "train.learning_rate (now {}) may help",
                      skipped_in_a_row_, report_.steps, job_.train.learning_rate));
  }
  if (totals.any_status() & kLeaving) report_.stopped = true;
  wait_for_steps_of(std::ranges::max(totals.compute_s));
  if (report_.steps % job_.train.check_every == 0) REMUDA_TRY(parallel_->check_parameters(report_.steps));
  if (is_first()) report_step(totals);
  return {};
}

/// Rank 0: passes the times of the last step, which had the balancer's current shares, to the balancer.
void Trainer::observe(const StepTotals& totals) {
  if (const auto decision = balancer_.observe(report_.steps, totals.compute_s)) record(*decision);
}

/// Writes the times of the last step to the trace, whatever its shares were.
void Trainer::trace(const StepTotals& totals) {
  if (trace_.active() && !last_parts_.empty())
    trace_.add({report_.steps, last_parts_, totals.compute_s, totals.wait_s});
}

void Trainer::record(const balance::BalanceDecision& decision) {
  report_.decisions.push_back(decision);
  if (!is_first()) return;
  Json event{{"event", "balance"}};
  event.update(to_json(decision));
  events_.send(event);
}

void Trainer::report_step(const StepTotals& totals) {
  const double now = monotonic_s();
  if (now - reported_s_ < kReportEvery_s && !done()) return;
  reported_s_ = now;
  events_.send({{"event", "step"},
                {"step", report_.steps},
                {"steps", steps_in_all()},
                {"epoch", epoch_},
                {"loss", totals.weight > 0 ? totals.loss_sum / totals.weight : 0},
                {"samples_per_s", report_.samples_per_s()},
                {"shares", last_parts_},
                {"compute_s", totals.compute_s},
                {"wait_s", totals.wait_s}});
}

Result<void> Trainer::end_epoch(int epoch) {
  if (report_.stopped) return {};
  report_.loss_per_epoch.push_back(epoch_loss_ / epoch_weight_);
  Json event{{"event", "epoch"},
             {"epoch", epoch},
             {"epochs", job_.train.epochs},
             {"train_loss", report_.loss_per_epoch.back()}};
  if (test_) {
    REMUDA_TRY(average_buffers(communicator_, *model_, samples_since_average_));
    samples_since_average_ = 0;
    REMUDA_TRY(parallel_->swap_average());
    const auto leave = [this] { return leave_.load(); };
    const EvaluationPlan plan{job_.model, job_.data.padding,        shares_, ops_.device(), compute_type_,
                              leave,      loader_threads(job_.data)};
    REMUDA_ASSIGN(const auto test, evaluate(communicator_, *model_, *test_, plan, pace_));
    REMUDA_TRY(parallel_->swap_average());
    report_.stopped = !test;
    if (test) {
      report_.test = test;
      event["test_loss"] = test->loss;
      event["test_accuracy"] = test->accuracy;
    }
  }
  if (is_first()) events_.send(event);
  return {};
}

Result<void> Trainer::collect_totals() {
  const std::array<double, 4> sums{mine_.samples, mine_.compute_s, mine_.wait_s, mine_.data_wait_s};
  std::vector<std::array<double, 4>> all(communicator_.size());
  REMUDA_TRY(
      communicator_.all_gather(std::as_bytes(std::span(sums)), std::as_writable_bytes(std::span(all)), label::kTotals));
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    auto& device = report_.devices[rank];
    device.samples = all[rank][0];
    device.compute_s = all[rank][1];
    device.wait_s = all[rank][2];
    device.data_wait_s = all[rank][3];
    device.share = double(shares_[rank]) / job_.train.global_batch;
  }
  return {};
}

}  // namespace remuda::train
