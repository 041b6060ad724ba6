#include "train/power_sgd.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "compress/portable.h"
#include "profile/recorder.h"
#include "train/labels.h"

namespace remuda::train {

std::vector<compress::Placed> PowerSgd::matrices_of(const FlatParameters& flat) {
  const std::vector<compress::Shape> shapes = shapes_of(flat);
  std::vector<compress::Placed> matrices;
  for (size_t i = 0; i < shapes.size(); ++i) matrices.push_back({shapes[i], flat.layout().offset(i)});
  return matrices;
}

std::vector<compress::Shape> PowerSgd::shapes_of(const FlatParameters& flat) {
  std::vector<compress::Shape> shapes;
  for (const torch::Tensor& one : flat.parameters()) {
    const size_t count = size_t(one.numel()), rows = one.dim() > 1 ? size_t(one.size(0)) : count;
    shapes.push_back({rows, rows > 0 ? count / rows : 0});
  }
  return shapes;
}

Result<std::unique_ptr<CompressedOptimizer>> PowerSgd::create(Engine& engine, const UpdateRule& rule,
                                                              const Options& options, OwnedState& warm) {
  REMUDA_TRY(check_type(engine.flat.values().host().scalar_type()));
  try {
    std::unique_ptr<PowerSgd> optimizer(new PowerSgd(engine, rule, options, warm));
    REMUDA_TRY(optimizer->open(warm));
    return optimizer;
  } catch (const std::bad_alloc&) {
    return failed(
        "this host has no room for the state of train.compression, up to 16 bytes per parameter for each rank");
  }
}

double PowerSgd::sent_values(const FlatParameters& flat, size_t rank) {
  size_t sum = 0;
  for (const compress::Shape& shape : shapes_of(flat)) sum += compress::sent_values(shape, rank);
  return double(sum);
}

Result<void> PowerSgd::open(OwnedState& warm) {
  REMUDA_TRY(connect(rule_.states(), options_.average > 0));
  if (leaders()) {
    REMUDA_ASSIGN(sum_, compress::LowRankSum::create(*leaders(), matrices_of(engine_.flat),
                                                     engine_.flat.layout().extent(), options_.rank));
  }
  return take_over(warm);
}

Result<void> PowerSgd::exchange_and_step(double gradient_factor, const std::vector<GroupSettings>& settings) {
  {
    const profile::Span span("pack and send");
    if (sum_) REMUDA_TRY(sum_->add_up(gradients(), float(gradient_factor), label::kCompression));
    REMUDA_TRY(share(std::as_writable_bytes(gradients())));
  }
  const profile::Span span("unpack");
  const double norm = options_.clip_norm > 0 ? std::sqrt(compress::dot(gradients(), gradients())) : 0;
  const double factor = clip_factor(norm, options_.clip_norm);
  for_pieces(settings, [&](comm::Chunk range, const GroupSettings& group) { descend(range, factor, group); });
  if (!average_.empty()) {
    const auto keep = float(options_.average);
    compress::descend(average_, keep, keep - 1, values());
  }
  return {};
}

void PowerSgd::descend(comm::Chunk range, double factor, const GroupSettings& group) const {
  const auto part = [&](std::span<float> whole) { return whole.subspan(range.begin, range.size()); };
  const double rate = group.learning_rate, kept = 1 - rate * group.weight_decay;
  if (rule_.kind == UpdateRule::Kind::adamw) {
    const double correction = std::sqrt(1 - power(rule_.beta2, steps()));
    const compress::AdamStep step{.keep_mean = float(rule_.beta1),
                                  .take = float((1 - rule_.beta1) * factor),
                                  .keep_square = float(rule_.beta2),
                                  .take_square = float((1 - rule_.beta2) * factor * factor),
                                  .keep = float(kept),
                                  .rate = float(rate * correction / (1 - power(rule_.beta1, steps()))),
                                  .epsilon = float(rule_.epsilon * correction)};
    compress::descend(step, part(values()), part(state(0)), part(state(1)), part(gradients()));
  } else if (rule_.states() == 1) {
    const compress::MomentumStep step{
        .keep = float(rule_.momentum), .take = float(factor), .decay = float(group.weight_decay), .rate = float(rate)};
    compress::descend(step, part(values()), part(state(0)), part(gradients()));
  } else {
    compress::descend(part(values()), float(kept), float(rate * factor), part(gradients()));
  }
}

void PowerSgd::write_owed(std::span<float> to) { std::ranges::copy(sum_->owed(), to.begin()); }

/// One of them for all.
void PowerSgd::owe(std::span<const float> all) {
  if (leaders()->rank() == 0)
    std::ranges::copy(all, sum_->owed().begin());
  else
    std::ranges::fill(sum_->owed(), 0.0f);
}

size_t PowerSgd::owed_bytes() const { return engine_.flat.layout().extent() * sizeof(float); }

}  // namespace remuda::train
