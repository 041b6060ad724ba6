#include "train/compressed_optimizer.h"

#include <algorithm>

#include "profile/recorder.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

/// Of gradients that the ranks of a host add up at a time: 4 MiB.
constexpr size_t kHostSlice = 1 << 20;

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<float> slice(std::span<float> values, comm::Chunk range) { return values.subspan(range.begin, range.size()); }

/// A view of them, valid as long as they are.
torch::Tensor tensor_of(std::span<float> values) {
  return torch::from_blob(values.data(), {int64_t(values.size())}, torch::kFloat);
}

Result<std::span<float>> allocate(comm::Communicator& communicator, size_t count) {
  REMUDA_ASSIGN(const std::span<std::byte> bytes, communicator.allocate(count * sizeof(float)));
  return floats(bytes);
}

}  // namespace

double power(double base, int64_t count) {
  double result = 1;
  for (; count > 0; count /= 2, base *= base)
    if (count % 2 == 1) result *= base;
  return result;
}

CompressedOptimizer::CompressedOptimizer(Engine& engine, const UpdateRule& rule, const OwnedState& warm)
    : engine_(engine), rule_(rule), steps_(warm.steps()) {}

Result<void> CompressedOptimizer::check_type(torch::ScalarType parameters) {
  if (parameters == torch::kFloat) return {};
  return usage_error("train.compression is for models of float32; leave it out");
}

/// The ranks of each host, and the first of each.
Result<void> CompressedOptimizer::connect(size_t states, bool has_average) {
  std::vector<int> leaders;
  for (const std::vector<int>& host : engine_.communicator.hosts()) {
    leaders.push_back(host.front());
    if (host.size() == 1) continue;
    REMUDA_ASSIGN(auto mine, engine_.communicator.split(host, label::kCompression));
    if (mine) here_ = std::move(mine);
  }
  hosts_ = std::ssize(leaders);
  REMUDA_ASSIGN(between_, engine_.communicator.split(leaders, label::kCompression));
  const size_t count = engine_.flat.layout().extent();
  if (here_) {
    REMUDA_ASSIGN(here_slice_, allocate(*here_, std::min(kHostSlice, count)));
  }
  for (size_t i = 0; i < states; ++i) {
    REMUDA_ASSIGN(states_.emplace_back(), allocate(engine_.communicator, count));
  }
  if (has_average) {
    REMUDA_ASSIGN(average_, allocate(engine_.communicator, count));
  }
  set_timeout(engine_.timeout_s);
  return {};
}

/// States and average of all, from their owners; and the values, which are no longer rounded when they are sent.
Result<void> CompressedOptimizer::take_over(OwnedState& warm) {
  const FlatLayout& layout = engine_.flat.layout();
  const Moment there = engine_.flat.values().to_host({0, layout.extent()});
  REMUDA_TRY(engine_.ops.wait(there, "the copy of all parameters", engine_.timeout_s));
  if (steps_ == 0) return {};
  const torch::NoGradGuard no_grad;
  for (const Owned& own : warm.owned()) {
    const size_t begin = layout.offset(own.parameter) + own.first;
    const comm::Chunk range{begin, begin + size_t(own.value.numel())};
    tensor_of(slice(values(), range)).copy_(own.value);
    for (size_t i = 0; i < own.states.size(); ++i) tensor_of(slice(states_[i], range)).copy_(own.states[i]);
    if (!average_.empty()) tensor_of(slice(average_, range)).copy_(own.average);
  }
  REMUDA_TRY(gather_all());
  send_values();
  return {};
}

/// Collective. Everybody's part, in memory of the communicator, to all.
Result<void> CompressedOptimizer::gather(std::span<float> whole) {
  const FlatLayout& layout = engine_.flat.layout();
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket)
    REMUDA_TRY(engine_.communicator.gather_parts(std::as_writable_bytes(slice(whole, layout.bucket(bucket))),
                                                 layout.parts(bucket).in_bytes(sizeof(float)), uint32_t(bucket)));
  return {};
}

Result<void> CompressedOptimizer::gather_all() {
  REMUDA_TRY(gather(values()));
  for (const std::span<float> state : states_) REMUDA_TRY(gather(state));
  return average_.empty() ? Result<void>() : gather(average_);
}

std::span<float> CompressedOptimizer::values() const { return floats(engine_.flat.values().host_bytes()); }
std::span<float> CompressedOptimizer::gradients() const { return floats(engine_.flat.gradients().host_bytes()); }

void CompressedOptimizer::send_values() {
  engine_.flat.values().to_device({0, engine_.flat.layout().extent()});
  engine_.flat.values().join();
}

/// The leader gets the sum of this host's gradients in place of its own.
Result<void> CompressedOptimizer::add_up_here() {
  if (!here_) return {};
  const profile::Span span("add up on the host");
  here_->set_timeout(engine_.timeout_s);
  const std::span<float> mine = gradients();
  for (size_t begin = 0; begin < mine.size(); begin += here_slice_.size()) {
    const comm::Chunk range{begin, std::min(mine.size(), begin + here_slice_.size())};
    const std::span<float> room = here_slice_.first(range.size());
    std::ranges::copy(slice(mine, range), room.begin());
    const comm::Parts all_to_leader(std::vector<size_t>(size_t(here_->size()), range.size()));
    REMUDA_TRY(here_->reduce_scatter(room, all_to_leader, label::kCompression));
    if (here_->rank() == 0) std::ranges::copy(room, slice(mine, range).begin());
  }
  return {};
}

Result<void> CompressedOptimizer::share(std::span<std::byte> bytes) {
  if (!here_) return {};
  // A rank that waits for its leader must not give up before this has, whose error names the host that was lost.
  here_->set_timeout(3 * engine_.timeout_s);
  return here_->broadcast(bytes, 0, label::kCompression);
}

void CompressedOptimizer::for_pieces(const std::vector<GroupSettings>& settings,
                                     const std::function<void(comm::Chunk, const GroupSettings&)>& step) const {
  const FlatLayout& layout = engine_.flat.layout();
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket)
    for (int rank = 0; rank < engine_.communicator.size(); ++rank)
      for (const Piece& piece : layout.pieces(bucket, rank)) step(piece.range, settings[piece.group]);
}

/// Waits until the device has read what it was last sent from memory of the host, and has computed with it.
Result<void> CompressedOptimizer::free_host() const {
  return engine_.ops.wait(engine_.ops.here(), "the copy of parameters", engine_.timeout_s);
}

Result<void> CompressedOptimizer::step(double gradient_factor, std::vector<GroupSettings> settings) {
  ++steps_;
  engine_.before_wait();  // all that follows is part of the exchange, and no matter of a device's speed
  profile::TimedSpan span("wait");
  REMUDA_TRY(free_host());
  // A cosine may be rounded in another way elsewhere.
  REMUDA_TRY(engine_.communicator.broadcast(std::as_writable_bytes(std::span(settings)), 0, label::kCompression));
  REMUDA_TRY(add_up_here());
  REMUDA_TRY(exchange_and_step(gradient_factor, settings));
  send_values();
  wait_s_ = span.end();
  return {};
}

void CompressedOptimizer::set_timeout(double seconds) {
  if (between_) between_->set_timeout(seconds);
}

Result<void> CompressedOptimizer::swap_average() {
  if (average_.empty() || steps_ == 0) return {};
  REMUDA_TRY(free_host());
  std::ranges::swap_ranges(values(), average_);
  send_values();
  return {};
}

Result<void> CompressedOptimizer::settle() {
  const FlatLayout& layout = engine_.flat.layout();
  const std::span<float> owed = gradients();
  std::ranges::fill(owed, 0.0f);
  if (between_) write_owed(owed);
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket)
    REMUDA_TRY(engine_.communicator.reduce_scatter(slice(owed, layout.bucket(bucket)), layout.parts(bucket),
                                                   uint32_t(bucket)));
  return {};
}

std::vector<Owned> CompressedOptimizer::owned() {
  const FlatLayout& layout = engine_.flat.layout();
  std::vector<Owned> all;
  for (size_t i = 0; i < layout.parameters(); ++i) {
    const comm::Chunk range = layout.own_of(i, engine_.communicator.rank());
    if (range.size() == 0) continue;
    Owned one{i, range.begin - layout.offset(i), tensor_of(slice(values(), range)), {}, {}};
    for (const std::span<float> state : states_) one.states.push_back(tensor_of(slice(state, range)));
    one.states.push_back(tensor_of(slice(gradients(), range)));
    if (!average_.empty()) one.average = tensor_of(slice(average_, range));
    all.push_back(std::move(one));
  }
  return all;
}

Result<void> CompressedOptimizer::resume(int64_t steps) {
  steps_ = steps;
  REMUDA_TRY(free_host());
  REMUDA_TRY(gather_all());
  REMUDA_TRY(gather(gradients()));
  if (between_) owe(gradients());
  send_values();
  return {};
}

size_t CompressedOptimizer::state_bytes() const {
  return (states_.size() + !average_.empty()) * engine_.flat.layout().extent() * sizeof(float) +
         (between_ ? owed_bytes() : 0);
}

}  // namespace remuda::train
