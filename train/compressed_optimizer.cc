#include "train/compressed_optimizer.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "compress/frozen_adam.h"
#include "compress/portable.h"
#include "compress/signs.h"
#include "profile/recorder.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

/// Of gradients that the ranks of a host add up at a time: 4 MiB.
constexpr size_t kHostSlice = 1 << 20;

/// base^count, by the same products on every processor, which std::pow does not promise.
double power(double base, int64_t count) {
  double result = 1;
  for (; count > 0; count /= 2, base *= base)
    if (count % 2 == 1) result *= base;
  return result;
}

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<float> part(std::span<float> values, comm::Chunk range) { return values.subspan(range.begin, range.size()); }

/// A view of them, valid as long as they are.
torch::Tensor tensor_of(std::span<float> values) {
  return torch::from_blob(values.data(), {int64_t(values.size())}, torch::kFloat);
}

Result<std::span<float>> allocate(comm::Communicator& communicator, size_t count) {
  REMUDA_ASSIGN(const std::span<std::byte> bytes, communicator.allocate(count * sizeof(float)));
  return floats(bytes);
}

}  // namespace

CompressedOptimizer::CompressedOptimizer(Engine& engine, const UpdateRule& rule, int64_t steps)
    : engine_(engine), rule_(rule), steps_(steps) {}

Result<void> CompressedOptimizer::check_type(torch::ScalarType parameters) {
  if (parameters == torch::kFloat) return {};
  return usage_error("train.compression is for models of float32; leave it out");
}

Result<std::unique_ptr<CompressedOptimizer>> CompressedOptimizer::create(Engine& engine, const UpdateRule& rule,
                                                                         OwnedState& warm) {
  REMUDA_CHECK(rule.kind == UpdateRule::Kind::adamw, "its variance is what is frozen");
  REMUDA_TRY(check_type(engine.flat.values().host().scalar_type()));
  try {
    std::unique_ptr<CompressedOptimizer> optimizer(new CompressedOptimizer(engine, rule, warm.steps()));
    REMUDA_TRY(optimizer->connect());
    REMUDA_TRY(optimizer->take_over(warm));
    return optimizer;
  } catch (const std::bad_alloc&) {
    return failed(
        "this host has no room for the state of train.compression, up to 16 bytes per parameter for each rank");
  }
}

/// The ranks of each host, and the first of each.
Result<void> CompressedOptimizer::connect() {
  std::vector<int> leaders;
  for (const std::vector<int>& host : engine_.communicator.hosts()) {
    leaders.push_back(host.front());
    if (host.size() == 1) continue;
    REMUDA_ASSIGN(auto mine, engine_.communicator.split(host, label::kCompression));
    if (mine) here_ = std::move(mine);
  }
  hosts_ = std::ssize(leaders);
  REMUDA_ASSIGN(between_, engine_.communicator.split(leaders, label::kCompression));
  const size_t count = engine_.flat.layout().count();
  if (here_) {
    REMUDA_ASSIGN(here_slice_, allocate(*here_, std::min(kHostSlice, count)));
    packed_.resize(compress::packed_bytes(count));
  }
  if (between_) {
    REMUDA_ASSIGN(sum_, compress::OneBitSum::create(*between_, count));
  }
  REMUDA_ASSIGN(direction_, allocate(engine_.communicator, count));
  REMUDA_ASSIGN(inverse_root_, allocate(engine_.communicator, count));
  set_timeout(engine_.timeout_s);
  return {};
}

/// Momentum and variance of all, from their owners; and the values, which are no longer rounded when they are sent.
Result<void> CompressedOptimizer::take_over(OwnedState& warm) {
  const Moment there = engine_.flat.values().to_host({0, engine_.flat.layout().count()});
  REMUDA_TRY(engine_.ops.wait(there, "the copy of all parameters", engine_.timeout_s));
  if (steps_ == 0) return {};
  const torch::NoGradGuard no_grad;
  for (const Owned& own : warm.owned()) {
    const size_t begin = engine_.flat.layout().offsets()[own.parameter] + own.first;
    const comm::Chunk range{begin, begin + size_t(own.value.numel())};
    tensor_of(part(values(), range)).copy_(own.value);
    tensor_of(part(direction_, range)).copy_(own.states.at(0));
    tensor_of(part(inverse_root_, range)).copy_(own.states.at(1));
  }
  for (const auto whole : {values(), direction_, inverse_root_}) REMUDA_TRY(gather(whole));
  compress::invert_root(inverse_root_, 1 - power(rule_.beta2, steps_), rule_.epsilon);
  compress::divide(direction_, inverse_root_);
  engine_.flat.values().to_device({0, engine_.flat.layout().count()});
  engine_.flat.values().join();
  return {};
}

/// Collective. Everybody's part, in memory of the communicator, to all.
Result<void> CompressedOptimizer::gather(std::span<float> whole) {
  const FlatLayout& layout = engine_.flat.layout();
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket)
    REMUDA_TRY(engine_.communicator.gather_parts(std::as_writable_bytes(part(whole, layout.bucket(bucket))),
                                                 layout.parts(bucket).in_bytes(sizeof(float)), uint32_t(bucket)));
  return {};
}

std::span<float> CompressedOptimizer::values() const { return floats(engine_.flat.values().host_bytes()); }
std::span<float> CompressedOptimizer::gradients() const { return floats(engine_.flat.gradients().host_bytes()); }

/// What a step moves by: rank 0's, since a cosine may be rounded in another way elsewhere.
Result<std::vector<CompressedOptimizer::Rates>> CompressedOptimizer::agree(
    const std::vector<GroupSettings>& settings) const {
  std::vector<Rates> rates;
  const double correction = 1 - power(rule_.beta1, steps_);
  for (const GroupSettings& group : settings)
    rates.push_back({float(1 - group.learning_rate * group.weight_decay), float(group.learning_rate / correction)});
  REMUDA_TRY(engine_.communicator.broadcast(std::as_writable_bytes(std::span(rates)), 0, label::kCompression));
  return rates;
}

/// The leader gets the sum of this host's gradients in place of its own.
Result<void> CompressedOptimizer::add_up_here() {
  if (!here_) return {};
  const profile::Span span("add up on the host");
  here_->set_timeout(engine_.timeout_s);
  const std::span<float> mine = gradients();
  for (size_t begin = 0; begin < mine.size(); begin += here_slice_.size()) {
    const comm::Chunk range{begin, std::min(mine.size(), begin + here_slice_.size())};
    const std::span<float> slice = here_slice_.first(range.size());
    std::ranges::copy(part(mine, range), slice.begin());
    std::vector<size_t> ends(size_t(here_->size()), range.size());
    const comm::Parts all_to_leader(std::move(ends));
    REMUDA_TRY(here_->reduce_scatter(slice, all_to_leader, label::kCompression));
    if (here_->rank() == 0) std::ranges::copy(slice, part(mine, range).begin());
  }
  return {};
}

/// The directions of all hosts, packed.
Result<std::span<const std::byte>> CompressedOptimizer::add_up(float take) {
  const profile::Span span("pack and send");
  std::span<const std::byte> packed = packed_;
  if (between_) {
    const auto keep = float(rule_.beta1 / double(hosts_));
    const auto add = [&](comm::Chunk range, std::span<float> to) {
      compress::add_step(to, keep, part(direction_, range), take, part(gradients(), range), part(inverse_root_, range));
    };
    REMUDA_ASSIGN(packed, sum_->add_up(add, inverse_root_, label::kCompression));
  }
  if (!here_) return packed;
  if (between_) std::ranges::copy(packed, packed_.begin());
  // A rank that waits for its leader must not give up before this has, whose error names the host that was lost.
  here_->set_timeout(3 * engine_.timeout_s);
  REMUDA_TRY(here_->broadcast(packed_, 0, label::kCompression));
  return packed_;
}

void CompressedOptimizer::descend(const std::vector<Rates>& rates) {
  const FlatLayout& layout = engine_.flat.layout();
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket)
    for (int rank = 0; rank < engine_.communicator.size(); ++rank)
      for (const Piece& piece : layout.pieces(bucket, rank))
        compress::descend(part(values(), piece.range), rates[piece.group].keep, rates[piece.group].descend,
                          part(direction_, piece.range));
}

/// Waits until the device has read what it was last sent from memory of the host, and has computed with it.
Result<void> CompressedOptimizer::free_host() const {
  return engine_.ops.wait(engine_.ops.here(), "the copy of parameters", engine_.timeout_s);
}

Result<void> CompressedOptimizer::step(double gradient_factor, const std::vector<GroupSettings>& settings) {
  ++steps_;
  engine_.before_wait();  // all that follows is part of the exchange, and no matter of a device's speed
  const profile::Span span("wait");
  const double start = monotonic_s();
  REMUDA_TRY(free_host());
  REMUDA_ASSIGN(const std::vector<Rates> rates, agree(settings));
  REMUDA_TRY(add_up_here());
  REMUDA_ASSIGN(const std::span<const std::byte> packed, add_up(float((1 - rule_.beta1) * gradient_factor)));
  {
    const profile::Span unpacking("unpack");
    compress::unpack(packed, inverse_root_, direction_);
    descend(rates);
  }
  engine_.flat.values().to_device({0, engine_.flat.layout().count()});
  engine_.flat.values().join();
  wait_s_ = monotonic_s() - start;
  return {};
}

void CompressedOptimizer::set_timeout(double seconds) {
  if (between_) between_->set_timeout(seconds);
}

Result<void> CompressedOptimizer::settle() {
  const FlatLayout& layout = engine_.flat.layout();
  const std::span<float> owed = gradients();
  if (sum_) {
    std::ranges::copy(sum_->owed(), owed.begin());
    const std::span<float> own = part(owed, sum_->own());
    for (size_t i = 0; i < own.size(); ++i) own[i] += sum_->owed_of_sum()[i];
  } else {
    std::ranges::fill(owed, 0.0f);
  }
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket)
    REMUDA_TRY(
        engine_.communicator.reduce_scatter(part(owed, layout.bucket(bucket)), layout.parts(bucket), uint32_t(bucket)));
  return {};
}

std::vector<Owned> CompressedOptimizer::owned() {
  const FlatLayout& layout = engine_.flat.layout();
  std::vector<Owned> all;
  for (size_t i = 0; i + 1 < layout.offsets().size(); ++i) {
    const comm::Chunk own = layout.own(layout.bucket_of(i), engine_.communicator.rank());
    const comm::Chunk range{std::max(own.begin, layout.offsets()[i]), std::min(own.end, layout.offsets()[i + 1])};
    if (range.begin >= range.end) continue;
    all.push_back({i,
                   range.begin - layout.offsets()[i],
                   tensor_of(part(values(), range)),
                   {tensor_of(part(direction_, range)), tensor_of(part(inverse_root_, range)),
                    tensor_of(part(gradients(), range))},
                   {}});
  }
  return all;
}

Result<void> CompressedOptimizer::resume(int64_t steps) {
  steps_ = steps;
  REMUDA_TRY(free_host());
  for (const auto whole : {values(), direction_, inverse_root_, gradients()}) REMUDA_TRY(gather(whole));
  if (sum_) {
    std::ranges::fill(sum_->owed(), 0.0f);
    std::ranges::copy(part(gradients(), sum_->own()), sum_->owed_of_sum().begin());
  }
  engine_.flat.values().to_device({0, engine_.flat.layout().count()});
  engine_.flat.values().join();
  return {};
}

size_t CompressedOptimizer::state_bytes() const {
  size_t values = direction_.size() + inverse_root_.size();
  if (between_) values += direction_.size() + direction_.size() / size_t(hosts_);
  return values * sizeof(float);
}

}  // namespace remuda::train
