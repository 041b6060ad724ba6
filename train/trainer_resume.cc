// How a trainer goes on: from where a run before it ended, or where its own lost a rank or got another one.
#include <algorithm>
#include <fmt/format.h>

#include "base/clock.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/missed_steps.h"
#include "train/trainer.h"

namespace remuda::train {

/// Collective. Goes on where a run before this one was ended, where the job asks for that; or where this one went
/// on with other ranks.
Result<void> Trainer::resume() {
  const bool goes_on = options_.inherited.goes_on();
  if (goes_on) {
    REMUDA_ASSIGN(const char* const state, take_state_back());
    REMUDA_TRY(make_good_changes(state));
  } else {
    while (checkpoints_.has_found()) {
      REMUDA_TRY(compress_as_kept());
      REMUDA_ASSIGN(const std::optional<Progress> at, checkpoints_.resume(parallel_->state(), parallel_->flat()));
      if (at) go_on_from(*at);
    }
    report_compression();
  }
  if (report_.steps > 0) REMUDA_TRY(make_statistics_the_same());
  first_step_ = steps_made_ = report_.steps;
  profile_.begin_after(first_step_);
  REMUDA_TRY(begin_copies());
  if (!goes_on) return {};
  log_.go_on(std::move(options_.inherited.log), first_step_, options_.inherited.left);
  REMUDA_TRY(keep_profile());
  report_changes();
  return {};
}

/// Collective. What was found may be from before the run began to compress, and one that was damaged from after that.
Result<void> Trainer::compress_as_kept() {
  const bool is_kept = checkpoints_.compression() != job::Compression::none && report_.compression;
  if (is_kept == parallel_->is_compressed()) return {};
  return is_kept ? compress() : prepare_parallel();
}

/// Collective. Of the ranks that were there, where all of them have it: one may have been lost while they exchanged it.
Result<void> Trainer::keep_profile() {
  const Json& before = options_.inherited.profile;
  const int mine = joins() || !before.is_null() ? 1 : 0;
  REMUDA_ASSIGN(const std::vector<int> known, gather_all(communicator_, mine, label::kLoss));
  if (std::ranges::find(known, 0) != known.end()) return {};
  Json report = joins() ? Json::object() : before;
  report["devices"] = Json::array();
  for (const size_t rank : options_.inherited.left)
    if (rank != Inheritance::kJoins && !joins()) report["devices"].push_back(before.at("devices").at(rank));
  profile_.take(std::move(report));
  return {};
}

/// Of copies of the parts that ranks own now: those of one step that was copied before and after a move differ.
int Trainer::generation_of_copies() const { return options_.inherited.generation + (moves_ << 16); }

/// Collective. From here on no rank's part is lost with it, where the job asks for that.
Result<void> Trainer::begin_copies() {
  if (job_.elastic.ranks_lost == 0 || !job_.elastic.buddy || communicator_.size() == 1) return {};
  REMUDA_ASSIGN(buddy_, Buddy::create(communicator_, generation_of_copies(), *model_, parallel_->optimizer(),
                                      parallel_->flat(), host_copies()));
  return steps_made_ > 0 ? buddy_->keep(progress()) : Result<void>();
}

/// Collective. From copies in memory, or else from a checkpoint; returns from where.
Result<const char*> Trainer::take_state_back() {
  Inheritance& inherited = options_.inherited;
  REMUDA_ASSIGN(const std::optional<TakenUp> taken,
                take_up(communicator_, inherited.copies, *model_, parallel_->optimizer(), parallel_->flat()));
  if (taken) {
    inherited.copies.clear();
    if (taken->copies) inherited.copies.push_back(taken->copies);  // until all have new ones
    go_on_from(taken->progress);
    return "memory";
  }
  inherited.copies.clear();
  REMUDA_ASSIGN(const std::optional<Progress> at, checkpoints_.resume_again(parallel_->state(), parallel_->flat()));
  if (at) go_on_from(*at);
  return at ? "checkpoint" : "start";
}

/// Collective, after each step.
Result<void> Trainer::keep_copies() {
  options_.inherited.copies.clear();  // this step has shown that all have what was kept after the one before
  return buddy_ ? buddy_->keep(progress()) : Result<void>();
}

Result<void> Trainer::keep_state() {
  if (buddy_) return {};
  REMUDA_ASSIGN(std::shared_ptr<Copies> copies,
                copies_of_own(communicator_, generation_of_copies(), *model_, parallel_->optimizer(), parallel_->flat(),
                              host_copies(), progress()));
  options_.inherited.copies = {std::move(copies)};
  return {};
}

void Trainer::go_on_from(const Progress& at) {
  position_ = at.position;
  report_.steps = at.steps;
  report_.skipped_steps = at.skipped_steps;
  report_.loss_per_epoch = at.loss_per_epoch;
  if (!done())  // else the last one may be of a part of an epoch
    report_.loss_per_epoch.resize(std::min<size_t>(at.loss_per_epoch.size(), position_ / train_.size()));
  epoch_loss_ = at.epoch_loss;
  epoch_weight_ = at.epoch_weight;
  samples_since_average_ = at.samples_since_average;
  loss_scale_.resume(at.loss_scale, at.finite_in_a_row);
}

/// Collective. The run is where it goes on from: notes what losses and joins have cost. An error where steps were made
/// whose state nobody has, unless the run is to stop anyway.
Result<void> Trainer::make_good_changes(const char* state) {
  REMUDA_ASSIGN(const std::vector<int> made, gather_all(communicator_, options_.inherited.steps, label::kLoss));
  REMUDA_ASSIGN(const std::vector<int> leaving, gather_all(communicator_, leave_ ? 1 : 0, label::kLoss));
  if (std::ranges::max(leaving) > 0) report_.stopped = true;
  const int steps = std::ranges::max(made);
  const bool is_bereft = report_.steps == 0 && steps > 1;  // one step is soon made again
  const double seconds = monotonic_s() - options_.inherited.lost_s;
  report_.joined_ranks = options_.inherited.joins;
  for (RankJoin& join : report_.joined_ranks) {
    if (join.seconds > 0) continue;
    join.step = report_.steps;
    join.seconds = seconds;
  }
  report_.lost_ranks = options_.inherited.losses;
  for (RankLoss& loss : report_.lost_ranks) {
    if (!loss.state.empty()) continue;
    loss.step = steps;
    loss.resumed_from = report_.steps;
    loss.state = is_bereft ? "none" : state;
    loss.seconds = seconds;
  }
  if (!is_bereft || report_.stopped) return {};
  if (report_.lost_ranks.empty()) return failed("no rank holds the state of the run");
  const RankLoss& last = report_.lost_ranks.back();
  return failed(
      fmt::format("rank {} ({}) was lost after step {} ({}), and nothing holds the state of the run: elastic.buddy "
                  "keeps it in memory, and checkpoint.folder with checkpoint.every_steps on a disk",
                  last.rank, last.device, last.step, last.cause));
}

void Trainer::report_changes() {
  if (!is_first()) return;
  const Inheritance& inherited = options_.inherited;
  if (!inherited.losses.empty() && inherited.losses.back().state.empty()) {
    Json event = to_json(report_.lost_ranks.back());
    event["event"] = "regrouped";
    events_.send(event);
  }
}

/// With those of the trainers before.
CheckpointReport Trainer::checkpoints_in_all() const {
  CheckpointReport all = checkpoints_.report();
  const CheckpointReport& before = options_.inherited.checkpoints;
  if (options_.inherited.goes_on()) all.resumed_from = before.resumed_from;
  if (all.written == 0) {
    all.bytes = before.bytes;
    all.write_s = before.write_s;
  }
  all.balance_kept = report_.checkpoints.balance_kept;
  all.written += before.written;
  all.failed += before.failed;
  all.background_s += before.background_s;
  all.held_s += before.held_s;
  all.load_s += before.load_s;
  return all;
}

Inheritance Trainer::bequest() {
  checkpoints_.settle();
  std::vector<std::shared_ptr<Copies>> copies = options_.inherited.copies;
  if (buddy_) copies.push_back(buddy_->copies());
  return {.losses = report_.lost_ranks,
          .joins = report_.joined_ranks,
          .steps = steps_made_,
          .kept = checkpoints_.steps(),
          .copies = std::move(copies),
          .generation = options_.inherited.generation,
          .left = {},
          .balance = is_interrupted_ ? std::optional(learned()) : std::nullopt,
          .checkpoints = checkpoints_in_all(),
          .totals = mine_,
          .log = log_.kept(),
          .timed = report_.timed(),
          .oom_steps = report_.oom_steps,
          .profile = profile_.report(),
          .began_s = began_s_,
          .lost_s = monotonic_s()};
}

Progress Trainer::progress() const {
  return {.position = position_,
          .steps = report_.steps,
          .skipped_steps = report_.skipped_steps,
          .epoch_loss = epoch_loss_,
          .epoch_weight = epoch_weight_,
          .loss_per_epoch = report_.loss_per_epoch,
          .loss_scale = loss_scale_.scale(),
          .finite_in_a_row = loss_scale_.finite_in_a_row(),
          .optimizer_steps = parallel_->state().steps(),
          .missed_steps = missed_steps(parallel_->state(), parallel_->flat(), *model_),
          .compression = parallel_->is_compressed() ? report_.compression->kind : job::Compression::none,
          .samples_since_average = samples_since_average_,
          .balance = is_first() ? learned() : KeptBalance()};
}

/// Collective. What the run before has learned of the devices, where this one has the same; or this one, before others
/// joined it.
Result<std::optional<KeptBalance>> Trainer::kept_balance() {
  REMUDA_ASSIGN(devices_, gather_all(communicator_, device_hash(), label::kNeeds));
  if (!options_.inherited.joins.empty()) {
    const auto& before = options_.inherited.balance;
    REMUDA_ASSIGN(const std::string text,
                  share_text(communicator_, 0, before ? to_line(to_json(*before)) : "", label::kNeeds));
    const auto shared = parse_kept_balance(parse_json(text, "what is known of the devices").value_or(Json()));
    return shared ? std::optional(shared->with(devices_)) : std::nullopt;
  }
  const KeptBalance* const kept = checkpoints_.balance();
  if (!kept || !kept->is_of(devices_)) return std::nullopt;
  report_.checkpoints.balance_kept = true;
  return *kept;
}

KeptBalance Trainer::learned() const {
  KeptBalance learned{.recomputes = report_.recomputes, .spills = report_.spills};
  for (int rank = 0; rank < communicator_.size(); ++rank)
    learned.ranks.push_back(
        {devices_[rank], alone_[rank], balancer_.known_times(rank), memory_.needs()[rank], measured_[rank].update_s});
  return learned;
}

}  // namespace remuda::train
