#include "train/gradient_reducer.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/check.h"
#include "profile/recorder.h"
#include "train/ready_order.h"
#include "train/sharded_blocks.h"

namespace remuda::train {
namespace {

/// Reports a usage error that makes a step's sums wrong, on any rank; the error is the same on all.
Result<void> refuse_misuse(const StepTotals& totals) {
  if (const int rank = totals.first_with(kReadyTwice); rank >= 0)
    return usage_error(fmt::format("on rank {} {}", rank, kReadyTwiceText));
  if (const int rank = totals.first_with(kGradientMoved); rank >= 0)
    return usage_error(fmt::format(
        "on rank {} a gradient was reset or replaced between begin() and finish(), as zero_grad() does when "
        "it sets gradients to none; leave them in place, begin() zeroes them",
        rank));
  if (const int rank = totals.first_with(kNoBackward); rank >= 0)
    return usage_error(fmt::format(
        "on rank {} losses were reported by begin(), but no backward() came after it; what runs before begin() or "
        "accumulate() is lost",
        rank));
  if (const int rank = totals.first_with(kDetached); rank >= 0)
    return usage_error(fmt::format(
        "on rank {} the loss requires no gradient, so that no backward() can follow: detach(), a NoGradGuard or "
        "parameters that are frozen keep it from the model",
        rank));
  if (const int rank = totals.first_with(kMeanLoss); rank >= 0)
    return usage_error(
        fmt::format("on rank {} the loss is a mean, but what is added up over the ranks are sums: compute it with "
                    "torch::Reduction::Sum, or multiply it by the number of losses that begin() is told",
                    rank));
  return {};
}

}  // namespace

GradientReducer::GradientReducer(Engine& engine, std::vector<int64_t> times)
    : engine_(engine),
      bucket_size_(engine.flat.layout().whole_buckets()),
      times_(std::move(times)),
      used_(engine.flat.parameters().size()),
      self_(std::make_shared<GradientReducer*>(this)) {
  for (size_t i = 0; i < engine.flat.layout().whole_parameters(); ++i) {
    ++bucket_size_[engine.flat.layout().bucket_of(i)];
    add_hook(i, [this, i] { on_ready(i); });
  }
}

GradientReducer::~GradientReducer() { *self_ = nullptr; }

void GradientReducer::note_blocks() {
  for (size_t i = engine_.flat.layout().whole_parameters(); i < used_.size(); ++i) add_hook(i, [] {});
}

void GradientReducer::add_hook(size_t parameter, std::function<void()> on_gradient) {
  accumulators_.push_back(torch::autograd::impl::grad_accumulator(engine_.flat.parameters()[parameter]));
  add_post_accumulate_hook(accumulators_.back(), [self = self_, parameter, on_gradient = std::move(on_gradient)] {
    if (!*self) return;
    (*self)->used_[parameter] = 1;
    on_gradient();
  });
}

/// Nothing of it is there yet.
void GradientReducer::start_step() {
  if (accumulating_) return;
  engine_.sums->speaks() ? engine_.flat.zero_gradient() : engine_.flat.put_gradients_in_place();
  std::ranges::fill(used_, 0);
}

void GradientReducer::accumulate() {
  start_step();
  accumulating_ = true;
}

void GradientReducer::begin(StepReport report, double loss_scale) {
  REMUDA_CHECK(!armed_, "a step has one begin()");
  start_step();
  accumulating_ = false;
  report_ = std::move(report);
  bucket_missing_ = bucket_size_;
  times_left_ = times_;
  next_bucket_ = 0;
  loss_scale_ = loss_scale;
  any_ready_ = false;
  armed_ = true;
}

void GradientReducer::on_ready(size_t parameter) {
  if (!armed_) return;
  any_ready_ = true;
  if (!engine_.flat.gradient_in_place(parameter)) report_.status |= kGradientMoved;
  if (times_left_[parameter] == 0) {
    report_.status |= kReadyTwice;
    return;
  }
  if (--times_left_[parameter] > 0) return;
  --bucket_missing_[engine_.flat.layout().bucket_of(parameter)];
  if (engine_.blocks) return;
  while (next_bucket_ + 1 < bucket_size_.size() && bucket_missing_[next_bucket_] == 0) launch_next();
}

void GradientReducer::launch_next() {
  engine_.before_send();
  const size_t bucket = next_bucket_;
  if (loss_scale_ != 1 && engine_.sums->speaks()) {
    const torch::NoGradGuard no_grad;
    const comm::Chunk range = engine_.flat.layout().bucket(bucket);
    engine_.flat.gradients().device().narrow(0, int64_t(range.begin), int64_t(range.size())).mul_(1 / loss_scale_);
  }
  const Moment given = engine_.sums->give_gradients(bucket);
  engine_.queue.push([this, bucket, given] { return engine_.sums->reduce(bucket, given); });
  ++next_bucket_;  // now that it is sure to leave
}

void GradientReducer::give_up(StepStatus why) {
  REMUDA_CHECK(armed_, "a step is under way");
  armed_ = false;
  report_.weight = report_.loss_sum = 0;
  report_.status |= why;
}

Result<StepTotals> GradientReducer::finish() {
  armed_ = false;
  for (size_t i = 0; i < engine_.flat.layout().whole_parameters(); ++i)
    if (!engine_.flat.gradient_in_place(i)) report_.status |= kGradientMoved;
  while (next_bucket_ < bucket_size_.size()) launch_next();
  report_.used = used_;
  StepTotals totals;
  engine_.queue.push([&]() -> Result<void> {
    REMUDA_ASSIGN(report_.square_norm, engine_.sums->take_square_norm());
    if (engine_.blocks) report_.square_norm += engine_.blocks->parts().square_norm();
    const profile::Span span("verdict");
    REMUDA_ASSIGN(totals, exchange(engine_.communicator, report_));
    return {};
  });
  profile::TimedSpan span("wait");
  REMUDA_TRY(engine_.queue.drain());
  wait_s_ = span.end();
  REMUDA_TRY(refuse_misuse(totals));
  return totals;
}

}  // namespace remuda::train
