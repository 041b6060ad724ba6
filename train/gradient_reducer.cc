#include "train/gradient_reducer.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"
#include "profile/recorder.h"
#include "train/ready_order.h"
#include "train/sum_of_squares.h"

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
  return {};
}

comm::Element element_of(torch::ScalarType type) {
  if (type == torch::kBFloat16) return comm::Element::bfloat16;
  return type == torch::kDouble ? comm::Element::float64 : comm::Element::float32;
}

comm::Values values_in(const Mirror& mirror, comm::Chunk range) {
  return comm::Values(element_of(mirror.host().scalar_type()), mirror.host_bytes()).part(range);
}

double sum_of_squares(const Mirror& mirror, comm::Chunk range) {
  double sum = 0;
  AT_DISPATCH_FLOATING_TYPES(mirror.host().scalar_type(), "sum_of_squares", [&] {
    sum = train::sum_of_squares(
        std::span<const scalar_t>(mirror.host().data_ptr<scalar_t>() + range.begin, range.size()));
  });
  return sum;
}

}  // namespace

GradientReducer::GradientReducer(Engine& engine, std::vector<int64_t> times)
    : engine_(engine),
      bucket_size_(engine.flat.layout().buckets()),
      times_(std::move(times)),
      self_(std::make_shared<GradientReducer*>(this)) {
  for (size_t i = 0; i < engine.flat.parameters().size(); ++i) ++bucket_size_[engine.flat.layout().bucket_of(i)];
  add_hooks();
}

GradientReducer::~GradientReducer() { *self_ = nullptr; }

void GradientReducer::add_hooks() {
  const auto& parameters = engine_.flat.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameters[i]));
    add_post_accumulate_hook(accumulators_.back(), [self = self_, i] {
      if (*self) (*self)->on_ready(i);
    });
  }
}

void GradientReducer::accumulate() {
  if (!accumulating_) engine_.flat.zero_gradient();
  accumulating_ = true;
}

void GradientReducer::begin(StepReport report, double loss_scale) {
  REMUDA_CHECK(!armed_, "a step has one begin()");
  if (!accumulating_) engine_.flat.zero_gradient();
  accumulating_ = false;
  report_ = std::move(report);
  bucket_missing_ = bucket_size_;
  times_left_ = times_;
  next_bucket_ = 0;
  square_norm_ = 0;
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
  while (next_bucket_ + 1 < bucket_size_.size() && bucket_missing_[next_bucket_] == 0) launch_next();
}

void GradientReducer::launch_next() {
  engine_.before_send();
  const size_t bucket = next_bucket_;
  const comm::Chunk range = engine_.flat.layout().bucket(bucket);
  const Mirror& gradients = engine_.flat.gradients();
  if (loss_scale_ != 1) {
    const torch::NoGradGuard no_grad;
    gradients.device().narrow(0, int64_t(range.begin), int64_t(range.size())).mul_(1 / loss_scale_);
  }
  engine_.flat.round_gradients(range);
  const Moment on_host = engine_.flat.sent_gradients().to_host(range);
  engine_.queue.push([this, bucket, on_host] { return reduce(bucket, on_host); });
  ++next_bucket_;  // now that it is sure to leave
}

Result<void> GradientReducer::reduce(size_t bucket, const Moment& on_host) {
  const FlatLayout& layout = engine_.flat.layout();
  const Mirror& gradients = engine_.flat.gradients();
  const comm::Values sent = values_in(engine_.flat.sent_gradients(), layout.bucket(bucket));
  const profile::Details of_bucket{{{"bucket", int64_t(bucket)}, {"bytes", int64_t(sent.bytes.size())}}};
  {
    const profile::Span span("copy", of_bucket);
    REMUDA_TRY(engine_.ops.wait(on_host, fmt::format("the copy of gradients (bucket {})", bucket), engine_.timeout_s));
  }
  const profile::Span span("reduce_scatter", of_bucket);
  const comm::Chunk own = layout.own(bucket, engine_.communicator.rank());
  REMUDA_TRY(
      engine_.communicator.reduce_scatter(sent, layout.parts(bucket), values_in(gradients, own), uint32_t(bucket)));
  square_norm_ += sum_of_squares(gradients, own);
  return {};
}

void GradientReducer::give_up(StepStatus why) {
  REMUDA_CHECK(armed_, "a step is under way");
  armed_ = false;
  report_.weight = report_.loss_sum = 0;
  report_.status |= why;
}

Result<StepTotals> GradientReducer::finish() {
  armed_ = false;
  for (size_t i = 0; i < times_left_.size(); ++i)
    if (!engine_.flat.gradient_in_place(i)) report_.status |= kGradientMoved;
  while (next_bucket_ < bucket_size_.size()) launch_next();
  StepTotals totals;
  engine_.queue.push([&]() -> Result<void> {
    const profile::Span span("verdict");
    report_.square_norm = square_norm_;
    REMUDA_ASSIGN(totals, exchange(engine_.communicator, report_));
    return {};
  });
  const profile::Span span("wait");
  const double start = monotonic_s();
  REMUDA_TRY(engine_.queue.drain());
  wait_s_ = monotonic_s() - start;
  REMUDA_TRY(refuse_misuse(totals));
  return totals;
}

}  // namespace remuda::train
