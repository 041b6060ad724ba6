#include "train/one_bit_adam.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "compress/frozen_adam.h"
#include "compress/portable.h"
#include "compress/signs.h"
#include "profile/recorder.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

std::span<float> part(std::span<float> values, comm::Chunk range) { return values.subspan(range.begin, range.size()); }

}  // namespace

Result<std::unique_ptr<CompressedOptimizer>> OneBitAdam::create(Engine& engine, const UpdateRule& rule,
                                                                OwnedState& warm) {
  REMUDA_CHECK(rule.kind == UpdateRule::Kind::adamw, "its variance is what is frozen");
  REMUDA_TRY(check_type(engine.flat.values().host().scalar_type()));
  try {
    std::unique_ptr<OneBitAdam> optimizer(new OneBitAdam(engine, rule, warm));
    REMUDA_TRY(optimizer->open(warm));
    return optimizer;
  } catch (const std::bad_alloc&) {
    return failed(
        "this host has no room for the state of train.compression, up to 16 bytes per parameter for each rank");
  }
}

Result<void> OneBitAdam::open(OwnedState& warm) {
  REMUDA_TRY(connect(2, false));
  const size_t count = engine_.flat.layout().extent();
  if (!is_alone_on_host()) packed_.resize(compress::packed_bytes(count));
  if (leaders()) {
    REMUDA_ASSIGN(sum_, compress::OneBitSum::create(*leaders(), count));
  }
  REMUDA_TRY(take_over(warm));
  if (steps() == 0) return {};
  compress::invert_root(inverse_root(), 1 - power(rule_.beta2, steps()), rule_.epsilon);
  compress::divide(direction(), inverse_root());
  return {};
}

/// The directions of all hosts, packed.
Result<std::span<const std::byte>> OneBitAdam::add_up(float take) {
  const profile::Span span("pack and send");
  std::span<const std::byte> packed = packed_;
  if (sum_) {
    const auto keep = float(rule_.beta1 / double(hosts()));
    const auto add = [&](comm::Chunk range, std::span<float> to) {
      compress::add_step(to, keep, part(direction(), range), take, part(gradients(), range),
                         part(inverse_root(), range));
    };
    REMUDA_ASSIGN(packed, sum_->add_up(add, inverse_root(), label::kCompression));
  }
  if (is_alone_on_host()) return packed;
  if (sum_) std::ranges::copy(packed, packed_.begin());
  REMUDA_TRY(share(packed_));
  return packed_;
}

Result<void> OneBitAdam::exchange_and_step(double gradient_factor, const std::vector<GroupSettings>& settings) {
  REMUDA_ASSIGN(const std::span<const std::byte> packed, add_up(float((1 - rule_.beta1) * gradient_factor)));
  const profile::Span span("unpack");
  compress::unpack(packed, inverse_root(), direction());
  const double correction = 1 - power(rule_.beta1, steps());
  for_pieces(settings, [&](comm::Chunk range, const GroupSettings& group) {
    compress::descend(part(values(), range), float(1 - group.learning_rate * group.weight_decay),
                      float(group.learning_rate / correction), part(direction(), range));
  });
  return {};
}

void OneBitAdam::write_owed(std::span<float> to) {
  std::ranges::copy(sum_->owed(), to.begin());
  compress::add_scaled(part(to, sum_->own()), 1, sum_->owed_of_sum());
}

void OneBitAdam::owe(std::span<const float> all) {
  std::ranges::fill(sum_->owed(), 0.0f);
  std::ranges::copy(all.subspan(sum_->own().begin, sum_->own().size()), sum_->owed_of_sum().begin());
}

size_t OneBitAdam::owed_bytes() const {
  const size_t count = engine_.flat.layout().extent();
  return (count + count / size_t(hosts())) * sizeof(float);
}

}  // namespace remuda::train
