#include "cli/train/run_reporter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "run/run_board.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

/// NaN counts as nothing.
void add(const std::vector<double>& values, std::vector<double>& sums) {
  sums.resize(std::max(sums.size(), values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) sums[i] += values[i];
}

}  // namespace

/// One in so many steps is wanted after as much time as those took since the one before, so that one is late by time
/// just when it is late by steps.
void RunReporter::add_checkpoint(pool::RunNotice& notice, double now_s) {
  if (step_ > kept_->step) paced_s_ = (now_s - kept_->at_s) / static_cast<double>(step_ - kept_->step);
  const double by_steps_s = checkpoint_.every_steps * paced_s_, by_time_s = checkpoint_.every_minutes * 60;
  notice.checkpoint_every_s =
      by_steps_s > 0 && by_time_s > 0 ? std::min(by_steps_s, by_time_s) : by_steps_s + by_time_s;
  notice.checkpoint_step = checkpoint_step_;
  if (checkpoint_step_ > 0 || notice.checkpoint_every_s > 0) notice.checkpoint_age_s = now_s - kept_->at_s;
}

void RunReporter::take(const Json& event, double now_s) {
  if (fd_ < 0) return;
  const std::string name = workers::text_field(event, "event");
  if (name == "step") take_step(event, now_s);
  if (name != "checkpoint" || !workers::text_field(event, "failed").empty()) return;
  checkpoint_step_ = static_cast<int64_t>(workers::number_field(event, "step"));
  kept_ = Mark{now_s, step_};
}

void RunReporter::take_step(const Json& event, double now_s) {
  step_ = static_cast<int64_t>(workers::number_field(event, "step"));
  if (!kept_) kept_ = Mark{now_s, step_};
  add(workers::numbers_field(event, "compute_s"), compute_s_);
  add(workers::numbers_field(event, "wait_s"), wait_s_);
  ++steps_;
  if (now_s - told_s_ < kEvery_s) return;
  told_s_ = now_s;
  pool::RunNotice notice{.step = step_, .steps = static_cast<int64_t>(workers::number_field(event, "steps"))};
  const std::vector<double> samples = workers::numbers_field(event, "shares");
  const double all = std::reduce(samples.begin(), samples.end());
  for (size_t i = 0; i < devices_.size(); ++i) {
    const size_t rank = first_ + i;
    if (rank >= compute_s_.size() || rank >= wait_s_.size()) break;
    const double all_s = compute_s_[rank] + wait_s_[rank];
    notice.step_s = std::max(notice.step_s, all_s / steps_);
    notice.parts.push_back({.device = devices_[i],
                            .share = rank < samples.size() && all > 0 ? samples[rank] / all : 0,
                            .waiting = all_s > 0 ? wait_s_[rank] / all_s : 0});
  }
  add_checkpoint(notice, now_s);
  run::write_notice(fd_, notice);
  compute_s_.clear();
  wait_s_.clear();
  steps_ = 0;
}

}  // namespace remuda::cli
