#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "base/clock.h"
#include "train/agreement.h"
#include "train/evaluate.h"
#include "train/labels.h"
#include "train/model/recompute.h"

namespace remuda::train {
namespace {

constexpr int kMostSkippedInARow = 10;  ///< then the run is beyond recovery
constexpr double kReportEvery_s = 0.25;

// The timeout for a rank that does not join a collective call: this many steps of the slowest device, and at least the
// one that the job gives.
constexpr double kPatienceSteps = 20;

}  // namespace

/// All ranks know the same times, and so wait equally long.
void Trainer::wait_for_steps_of(double seconds) {
  const double timeout_s = std::max(job_.elastic.timeout_s, kPatienceSteps * seconds);
  parallel_->set_timeout(timeout_s);
  if (buddy_) buddy_->set_timeout(timeout_s);
  if (BatchFeed* const feed = batches_.feed()) feed->set_timeout(timeout_s);
}

/// Collective. At the end of a run that was long enough for the devices' speeds to have changed since its start, by
/// warming up for example: their speed alone is the mean of both measurements.
Result<void> Trainer::measure_again(double run_s) {
  if (parallel_->is_compressed()) return {};  // what a device alone would do is gone
  bool again = is_first() && !report_.stopped && run_s > options_.measure_again_after_s;
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(&again, 1)), 0, label::kMeasureAgain));
  if (!again) return {};
  REMUDA_ASSIGN(const AloneCosts costs, alone_costs());
  if (costs.times.leaving) return {};  // the user asked to stop, and the run is complete
  for (int rank = 0; rank < communicator_.size(); ++rank)
    report_.devices[rank].alone_measurements.push_back(alone_samples_per_s(costs.times.by_rank[rank]));
  return {};
}

Result<RunReport> Trainer::run() {
  if (began_s_ == 0) began_s_ = options_.inherited.began_s > 0 ? options_.inherited.began_s : monotonic_s();
  is_interrupted_ = false;
  epoch_ = 1 + int(report_.loss_per_epoch.size());
  for (; epoch_ <= job_.train.epochs && (!done() || is_owed(epoch_)); ++epoch_) {
    REMUDA_TRY(run_epoch(epoch_));
    if (is_interrupted_) return report_;
    REMUDA_TRY(end_epoch(epoch_));
  }
  if (!report_.test) REMUDA_TRY(test());  // it went on from the end of a run
  REMUDA_TRY(profile_.finish());
  report_.profile = profile_.report();
  REMUDA_TRY(parallel_->check_parameters(report_.steps));
  REMUDA_TRY(check_weights());
  if (report_.not_finite().empty())
    REMUDA_TRY(checkpoints_.finish(parallel_->state(), parallel_->flat(), progress()));
  else
    REMUDA_TRY(checkpoints_.complete());  // what is there may be better
  REMUDA_TRY(parallel_->swap_average());  // what is left of the run
  REMUDA_TRY(parallel_->send_unrounded());
  REMUDA_TRY(average_statistics());
  REMUDA_TRY(collect_totals());
  log_.finish();
  report_.communication_s = log_.kept().communication_s;
  if (!log_.kept().history.empty()) report_.history = log_.kept().history.to_json();
  report_.share_changes = balancer_.changes();
  report_.checkpoints = checkpoints_in_all();
  report_unwritten();
  report_sharded();
  report_left_out();
  report_exchange();
  report_.seconds = monotonic_s() - began_s_;
  // Whoever is lost now has made all steps, and the report is whole without these figures.
  if (const auto again = measure_again(report_.seconds); !again && again.error().kind != ErrorKind::lost_peer)
    return tl::unexpected(again.error());
  return report_;
}

/// Collective. A last update may have left values that no later step could show.
Result<void> Trainer::check_weights() {
  const torch::NoGradGuard no_grad;
  int mine = 1;
  for (const torch::Tensor& values : parallel_->own_values())  // by a norm, which takes no memory of the device
    if (values.numel() > 0 && !std::isfinite(at::linalg_vector_norm(values, INFINITY).item<double>())) mine = 0;
  REMUDA_ASSIGN(const std::vector<int> all, gather_all(communicator_, mine, label::kValues));
  report_.has_finite_weights = std::ranges::find(all, 0) == all.end();
  return {};
}

/// What the run was asked for, and could not leave; its outputs after the last step are still to come.
void Trainer::report_unwritten() {
  if (!is_first()) return;
  report_.unwritten = log_.unwritten();
  if (const std::string& why = profile_.why_no_trace(); !why.empty())
    report_.unwritten.push_back(job::unwritten("trace", why, job_.output.trace));
  const CheckpointReport& kept = report_.checkpoints;
  if (!kept.why_no_last.empty())
    report_.unwritten.push_back(
        job::unwritten("checkpoint", kept.why_no_last, job_.checkpoint.folder, kept.last_bytes));
}

void Trainer::report_sharded() {
  if (!is_sharded()) return;
  const ShardedParts& parts = parallel_->blocks()->parts();
  const double bytes = parts.bytes_per_pass();
  report_.sharded = {int(parts.blocks()), double(parts.largest_block_bytes()), bytes,
                     bytes * parts.trial_cost().seconds_per_byte(), bytes * parts.cost().seconds_per_byte()};
}

Result<void> Trainer::write(const std::function<Result<void>(const ValuesOf& values_of)>& write) {
  if (!is_sharded()) return is_first() ? write(as_it_is) : Result<void>();
  if (!is_first()) return parallel_->blocks()->lend();
  const Result<void> written = write([this](const torch::Tensor& one) { return parallel_->borrow(one); });
  const Result<void> ended = parallel_->blocks()->end_lending();
  return written ? ended : written;
}

Result<void> Trainer::run_epoch(int epoch) {
  const uint64_t end = uint64_t(epoch) * train_.size();
  if (position_ == end - train_.size()) epoch_loss_ = epoch_weight_ = 0;
  while (position_ < end && !done()) {
    const int size = batches_.step_size(position_);
    REMUDA_TRY(compress_when_due());
    REMUDA_TRY(profile_.begin_step(report_.steps, mine_));
    const double start = monotonic_s();
    const uint64_t sent_bytes = parallel_->sent_bytes();
    REMUDA_ASSIGN(const StepTotals totals, run_step(position_));
    exchanges_.timed(totals);
    exchanges_.made(monotonic_s() - start, double(parallel_->sent_bytes() - sent_bytes));
    position_ += uint64_t(size);
    steps_made_ = report_.steps;
    REMUDA_TRY(keep_copies());
    REMUDA_TRY(checkpoints_.after_step(totals, parallel_->state(), parallel_->flat(), [this] { return progress(); }));
    if ((totals.status[0] & kMoving) && !done()) REMUDA_TRY(move_state());
    if (report_.steps - first_step_ > kUntimedSteps) {
      report_.timed_s += monotonic_s() - start;
      report_.timed_samples += size;
    }
    REMUDA_TRY(profile_.end_step(mine_));
    is_interrupted_ = (totals.status[0] & kJoining) && !done();
    if (is_interrupted_) return checkpoints_.complete();
  }
  return parallel_->arrive();
}

/// Whether parameters may arrive under the next step's forward pass: nothing collective comes before it, the model's
/// operators are seen, or nobody waits for any, and no rank that is lost meanwhile would have to be made good for.
bool Trainer::may_start_update(const StepTotals& totals) const {
  const bool may_arrive = parallel_->is_of_one() || (job_.model.path.empty() && !collectives_);
  const bool may_change = job_.elastic.ranks_lost > 0 || !job_.elastic.join.empty();
  const bool is_plain = (totals.any_status() & ~unsigned(kCheckpoint | kStored)) == 0;
  return communicator_.size() > 1 && may_arrive && !may_change && !is_sharded() && !parallel_->is_compressed() &&
         is_plain && !checkpoints_.meets_after(totals) && !done() && !profile_.meets_after(report_.steps);
}

/// The bit of this rank's report, where somebody waits and there is a step left to make together.
unsigned Trainer::joining() const {
  const bool waits = is_first() && options_.has_candidate && options_.has_candidate();
  return waits && report_.steps + 1 < steps_in_all() ? unsigned(kJoining) : 0;
}

Result<StepTotals> Trainer::run_step(uint64_t position) {
  start_.keep();
  statistics_.keep();
  for (;;) {
    const auto parts = batches_.parts(position, shares_);
    const double recomputed_before_s = mine_.recompute_s;
    REMUDA_ASSIGN(const ReducedStep step, attempt_step(position));
    log_.timed(step.totals);
    if (step.totals.any_status() & kOutOfMemory) {
      mine_.recompute_s = recomputed_before_s + last_.compute_s - last_.data_s;
      REMUDA_TRY(make_room(step.totals, parts));
      empty_cache();
      start_.restore();
      last_parts_.clear();
      continue;
    }
    if (is_first() && last_parts_ == balancer_.shares()) observe(step.totals);
    last_parts_ = parts;
    shares_ = step.totals.next_shares;
    mine_.samples += parts[communicator_.rank()];
    samples_since_average_ += parts[communicator_.rank()];
    REMUDA_TRY(settle_statistics(step.stands, parts));
    REMUDA_TRY(apply(step));
    const double loss = step.totals.weight > 0 ? step.totals.loss_sum / step.totals.weight : NAN;
    log_.made({report_.steps, loss, learning_rate(job_.train, report_.steps - 1, steps_in_all()), parts});
    return step.totals;
  }
}

Result<ReducedStep> Trainer::attempt_step(uint64_t position) {
  StepReport report = std::exchange(last_, {});
  if (is_first()) report.next_shares = balancer_.shares();
  REMUDA_ASSIGN(const Batch batch, batches_.take(position, shares_));
  last_.data_s = batches_.waited_s();
  mine_.data_wait_s += last_.data_s;
  add_compute(last_.data_s);
  const double loss_units = double(job_.train.global_batch) * std::max(1, train_.model_input().context);
  const std::vector<int> parts = batches_.parts(position, shares_);
  const int part = parts[communicator_.rank()];
  std::vector<bool> silent;
  for (const int one : parts) silent.push_back(one == 0);
  REMUDA_TRY(parallel_->set_silent(silent));
  local_.set_pieces(size_t(pieces(communicator_.rank(), parts)));
  {
    const MemoryWatch watch(ops_.device());
    const double recomputed_before_s = recomputed_s();
    add_compute(local_.run(batch, std::move(report), *parallel_, loss_scale_.of(compute_type_, loss_units)));
    mine_.recompute_s += (recomputed_s() - recomputed_before_s) * job_.devices[communicator_.rank()].slowdown;
    const auto use = watch.use();
    watch_memory(use ? use : memory_in_use(ops_.device()), part);
  }
  if (leave_) parallel_->report().status |= kLeaving;
  parallel_->report().status |= checkpoints_.status(report_.steps) | joining() | moving();
  auto step = parallel_->reduce();
  last_.gradient_wait_s = parallel_->wait_s();
  last_.wait_s = last_.gradient_wait_s + std::exchange(wait_in_step_s_, 0);
  mine_.wait_s += last_.wait_s;
  return step;
}

/// In how many pieces a rank computes its part. As many on all, where these are normalised together.
int Trainer::pieces(int rank, const std::vector<int>& parts) const {
  if (!norms_) return memory_.pieces(rank, parts[rank]);
  int most = 1;
  for (int other = 0; other < communicator_.size(); ++other) most = std::max(most, memory_.pieces(other, parts[other]));
  return most;
}

/// What a step of this rank took, with such a part, beside what it was expected to take: without samples, no more than
/// is there before it.
void Trainer::watch_memory(const std::optional<MemoryUse>& use, int part) {
  const MemoryNeed& need = memory_.needs()[size_t(communicator_.rank())];
  const std::optional<double> held = need.known > 0 ? std::optional(need.held) : std::nullopt;
  const auto predicted = part > 0 ? memory_.peak(communicator_.rank(), part) : held;
  if (use) last_.memory_bytes = use->peak + uncounted_bytes();
  if (!use || !predicted) return;
  MemoryReport& memory = mine_.memory;
  memory.predicted_peak = std::max(memory.predicted_peak, *predicted);
  if (const double peak = use->peak + uncounted_bytes(); peak > memory.peak) {
    memory.peak = peak;
    memory.before = use->before + uncounted_bytes();
  }
  memory.reserved_peak = std::max(memory.reserved_peak, use->reserved_peak + uncounted_bytes());
}

bool Trainer::any_computes_in(torch::ScalarType type) const {
  return std::ranges::find(report_.devices, type, &DeviceReport::precision) != report_.devices.end();
}

void Trainer::add_compute(double seconds) {
  last_.compute_s += seconds;
  mine_.compute_s += seconds;
}

Result<void> Trainer::apply(const ReducedStep& step) {
  ++report_.steps;
  const auto& totals = step.totals;
  const bool scale_may_help = loss_scale_.update(step.finite) && any_computes_in(torch::kHalf);
  wait_for_steps_of(std::ranges::max(totals.compute_s));
  if (step.stands) {
    const std::vector<GroupSettings> settings = settings_of(job_.train, report_.steps - 1, steps_in_all());
    pace_.start();
    REMUDA_TRY(may_start_update(totals) ? parallel_->start_update(step, settings) : parallel_->update(step, settings));
    last_.wait_s += parallel_->wait_s();
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
  if (report_.steps % job_.train.check_every == 0) REMUDA_TRY(parallel_->check_parameters(report_.steps));
  if (is_first()) report_step(totals);
  return {};
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
                {"loss", totals.weight > 0 ? totals.loss_sum / totals.weight : NAN},
                {"samples_per_s", report_.samples_per_s()},
                {"shares", last_parts_},
                {"compute_s", totals.compute_s},
                {"wait_s", totals.wait_s}});
}

void Trainer::empty_cache() const {
  if (job_.memory.empty_cache == job::Switch::on) ops_.empty_cache();
}

Result<void> Trainer::end_epoch(int epoch) {
  if (report_.stopped) return {};
  report_.loss_per_epoch.push_back(epoch_loss_ / epoch_weight_);
  Json event{{"event", "epoch"},
             {"epoch", epoch},
             {"epochs", job_.train.epochs},
             {"train_loss", report_.loss_per_epoch.back()}};
  REMUDA_TRY(test());
  if (report_.test && !report_.stopped) {
    event["test_loss"] = report_.test->loss;
    event["test_accuracy"] = report_.test->accuracy;
    log_.evaluated(report_.steps, *report_.test);
  }
  if (is_first()) events_.send(event);
  empty_cache();
  return {};
}

/// Collective. With the model as it is now, on the data to test with, where there are any.
Result<void> Trainer::test() {
  if (!test_ || report_.stopped) return {};
  REMUDA_TRY(average_statistics());
  REMUDA_TRY(parallel_->swap_average());
  const EvaluationPlan plan{
      .spec = job_.model,
      .padding = job_.data.padding,
      .shares = shares_,
      .device = ops_.device(),
      .compute_type = compute_type_,
      .leave = [this] { return leave_.load(); },
      .workers = loader_threads(job_.data, ops_.is_synchronous()),
      .memory = batch_memory_,
      .most = evaluated_at_once_,
      .finish_passes = [this] { return is_sharded() ? parallel_->blocks()->finish() : Result<void>(); },
      .goes_on_with =
          [this](int most) {
            evaluated_at_once_ = most;
            ++mine_.oom_evaluations;
          }};
  REMUDA_ASSIGN(const auto test, evaluate(communicator_, *model_, *test_, plan, pace_));
  REMUDA_TRY(parallel_->swap_average());
  report_.stopped = !test;
  if (test) report_.test = test;
  return {};
}

Result<void> Trainer::collect_totals() {
  count_spill();
  mine_.memory.parameters = double(parallel_->parameter_bytes());
  mine_.memory.gradients = double(parallel_->gradient_bytes());
  const OwnedState& state = parallel_->state();
  (state.is_on_host() ? mine_.memory.optimizer_on_host : mine_.memory.optimizer) = double(state.state_bytes());
  if (const Refused refused = ops_.refused(); refused.bytes > 0) {
    mine_.unregistered = {.bytes = refused.bytes};
    refused.why.copy(mine_.unregistered.why.data(), mine_.unregistered.why.size() - 1);
  }
  const OwnTotals own = mine_;
  std::vector<OwnTotals> all(communicator_.size());
  REMUDA_TRY(communicator_.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                                      label::kTotals));
  const FlatLayout& layout = parallel_->flat().layout();
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    auto& device = report_.devices[rank];
    static_cast<OwnTotals&>(device) = all[rank];
    device.share = double(shares_[rank]) / job_.train.global_batch;
    device.state_share = double(layout.owned(rank)) / double(layout.count());
    device.pieces = pieces(rank, shares_);
    device.memory_need = memory_.needs()[rank];
  }
  return {};
}

}  // namespace remuda::train
