#include "train/sharded_blocks.h"

#include <ATen/autocast_mode.h>
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <stdexcept>

#include "profile/recorder.h"
#include "train/agreement.h"
#include "train/error_text.h"
#include "train/labels.h"
#include "train/precision.h"

namespace remuda::train {
namespace {

/// Gives `work` to the queue. Where it fails, or is dropped as work before it has failed, the future is broken.
template <typename T>
std::future<T> queued(WorkQueue& queue, std::function<Result<T>()> work) {
  auto promise = std::make_shared<std::promise<T>>();
  std::future<T> done = promise->get_future();
  queue.push([work = std::move(work), promise = std::move(promise)]() -> Result<void> {
    REMUDA_ASSIGN(T value, work());
    promise->set_value(std::move(value));
    return {};
  });
  return done;
}

constexpr int32_t kEndOfLending = -1;
/// Between two blocks, and after the last one: a disk may take as long for what rank 0 writes.
constexpr double kLongestWrite_s = 3600;

}  // namespace

ShardedBlocks::ShardedBlocks(Engine& engine, ShardedParts& parts, WaitHooks hooks)
    : engine_(engine), parts_(parts), hooks_(std::move(hooks)) {}

void ShardedBlocks::fail() {
  if (outcome_) outcome_ = engine_.queue.drain();
  if (outcome_) outcome_ = failed("the blocks of the model were not exchanged");
  throw std::runtime_error(outcome_.error().message);
}

template <typename T>
T ShardedBlocks::wait_for(std::future<T>& work) {
  hooks_.before_wait();
  profile::TimedSpan span("wait");
  work.wait();
  hooks_.waited(span.end());
  try {
    return work.get();
  } catch (const std::future_error&) {
    fail();
    throw;
  }
}

/// Whether any rank has another pass, and of which kind.
ShardedBlocks::Pass ShardedBlocks::meet(Pass mine) {
  if (alone_) return mine;
  std::future<Pass> met = queued<Pass>(engine_.queue, [this, mine]() -> Result<Pass> {
    REMUDA_ASSIGN(const std::vector<Pass> all, gather_all(engine_.communicator, mine, label::kBlockPass));
    const Pass most = std::ranges::max(all);
    if (most > Pass::training) return failed("another rank makes a pass of a kind that is not known here");
    return most;
  });
  return wait_for(met);
}

void ShardedBlocks::start(Pass pass) {
  pass_ = pass;
  order_.resize(blocks());
  std::iota(order_.begin(), order_.end(), size_t{0});
  if (pass == Pass::training) {
    order_.insert(order_.end(), order_.rbegin() + 1, order_.rend());
    ++passes_;
  }
  fetched_ = released_ = sent_ = 0;
}

void ShardedBlocks::begin_pass() {
  make_rest();
  const Pass mine = torch::GradMode::is_enabled() ? Pass::training : Pass::forward;
  if (meet(mine) != mine) throw std::runtime_error("one rank trains while another one evaluates");
  start(mine);
  fetch();
}

/// As many of the next blocks as there is room for. Memory of the device is taken first: where there is none, nothing
/// has happened yet.
void ShardedBlocks::fetch() {
  for (; fetched_ < order_.size() && fetched_ < released_ + rooms_.size(); ++fetched_) {
    const size_t block = order_[fetched_], number = fetched_ % rooms_.size();
    Room& room = rooms_[number];
    room.memory = only_for_others_ ? torch::Tensor() : parts_.value_memory(block, number);
    room.filled =
        queued<Moment>(engine_.queue, [this, block, number, memory = room.memory, since = engine_.ops.here(),
                                       alone = alone_] { return parts_.fill(block, number, memory, since, alone); });
  }
}

/// Until the device has the block, as far as what this thread gives it from now on is concerned.
void ShardedBlocks::settle(Room& room) {
  if (room.filled.valid() && room.memory.defined()) engine_.ops.after(wait_for(room.filled));
}

void ShardedBlocks::take(size_t block) {
  Room& room = rooms_[released_ % rooms_.size()];
  settle(room);
  parts_.block(block).values().hold(room.memory);
}

/// The block that was filled first.
void ShardedBlocks::release() {
  parts_.block(order_[released_]).values().release();
  rooms_[released_ % rooms_.size()].memory = torch::Tensor();
  ++released_;
}

bool ShardedBlocks::sends_gradients_next() const {
  return pass_ == Pass::training && released_ + 1 >= blocks() && sent_ == released_ + 1 - blocks();
}

void ShardedBlocks::receive_gradients(size_t block) {
  torch::Tensor& memory = gradients_[sent_ % gradients_.size()];
  memory = torch::Tensor();
  memory = parts_.gradient_memory(block, sent_ % gradients_.size());
  parts_.block(block).gradients().hold(memory);
  computes_gradients_ = block;
}

void ShardedBlocks::send_gradients(size_t block) {
  const size_t number = sent_ % gradients_.size();
  const bool is_empty = computes_gradients_ != block;
  Moment given;
  if (!is_empty) {
    if (!parts_.block(block).gradients_in_place())
      throw std::runtime_error("a gradient of a sharded block was reset or replaced during its step");
    engine_.before_send();
    if (!alone_) given = parts_.give_gradients(block, number, gradients_[number], loss_scale_);
    parts_.block(block).gradients().release();
    computes_gradients_.reset();
  }
  const bool is_first = passes_ == 1;
  if (!alone_)
    engine_.queue.push([this, block, number, given, is_empty, is_first] {
      return parts_.add_up(block, number, given, is_empty, is_first);
    });
  ++sent_;
}

void ShardedBlocks::before_forward(size_t block) {
  if (!outcome_) fail();
  if (block == 0) begin_pass();
  if (pass_ == Pass::none || released_ != block || released_ >= blocks())
    throw std::runtime_error("the blocks of a sharded model run in another order than they are listed");
  take(block);
}

bool ShardedBlocks::holds(size_t block, const torch::Tensor& output) const {
  return output.is_alias_of(parts_.block(block).values().tensor());
}

void ShardedBlocks::after_forward(size_t block) {
  const bool is_last = block + 1 == blocks();
  if (is_last && pass_ == Pass::training) return;  // its backward pass comes first
  release();
  if (Autocast::type_on(engine_.ops.device()) != torch::kFloat) at::autocast::clear_cache();  // the block in 16 bits
  is_last ? make_rest() : fetch();
}

void ShardedBlocks::before_backward(size_t block) {
  if (!outcome_) fail();
  const size_t after = std::min(block + 1, blocks() - 1);  // what is there until now
  if (!sends_gradients_next() || order_[released_] != after || computes_gradients_.has_value() != (after != block))
    throw std::runtime_error("the backward pass of a sharded model leaves blocks out, or runs twice");
  if (after != block) {
    send_gradients(after);
    release();
    fetch();
    take(block);
  }
  receive_gradients(block);
}

/// The calls that are left of the pass under way, if one is.
void ShardedBlocks::make_rest() {
  if (pass_ == Pass::none) return;
  only_for_others_ = true;
  for (fetch(); released_ < order_.size(); fetch()) {
    settle(rooms_[released_ % rooms_.size()]);
    if (sends_gradients_next()) send_gradients(order_[released_]);
    release();
  }
  only_for_others_ = false;
  pass_ = Pass::none;
}

/// Once the queue has done all: gradients have left their memory.
void ShardedBlocks::drop_gradients() {
  for (torch::Tensor& memory : gradients_) memory = torch::Tensor();
  passes_ = 0;
}

void ShardedBlocks::end_all() {
  make_rest();
  for (Pass next = meet(Pass::none); next != Pass::none; next = meet(Pass::none)) {
    start(next);
    make_rest();
  }
  drop_gradients();
}

Result<void> ShardedBlocks::finish() {
  REMUDA_TRY(outcome_);
  try {
    end_all();
  } catch (const std::exception& error) {
    if (outcome_) throw;
  }
  return outcome_;
}

ShardedBlocks::Alone::Alone(ShardedBlocks* blocks) : blocks_(blocks) {
  if (blocks_) blocks_->alone_ = true;
}

ShardedBlocks::Alone::~Alone() {
  if (!blocks_) return;
  try {
    blocks_->make_rest();
    if (auto done = blocks_->engine_.queue.drain(); !done) blocks_->outcome_ = std::move(done);
  } catch (const std::exception& error) {
    if (blocks_->outcome_) blocks_->outcome_ = failed(sentence_of(error));
  }
  blocks_->drop_gradients();
  blocks_->alone_ = false;
}

Result<torch::Tensor> ShardedBlocks::borrow(size_t block) {
  if (borrowed_ == block) return parts_.in_room(block, 0);
  borrowed_.reset();
  engine_.queue.push([this, block]() -> Result<void> {
    auto number = int32_t(block);
    REMUDA_TRY(engine_.communicator.broadcast(std::as_writable_bytes(std::span(&number, 1)), 0, label::kLentBlock));
    REMUDA_TRY(parts_.fill(block, 0, {}, {}, false));
    return {};
  });
  REMUDA_TRY(engine_.queue.drain());
  borrowed_ = block;
  return parts_.in_room(block, 0);
}

Result<void> ShardedBlocks::end_lending() {
  borrowed_.reset();
  engine_.queue.push([this] {
    int32_t number = kEndOfLending;
    return engine_.communicator.broadcast(std::as_writable_bytes(std::span(&number, 1)), 0, label::kLentBlock);
  });
  return engine_.queue.drain();
}

Result<void> ShardedBlocks::lend() {
  engine_.queue.push([this]() -> Result<void> {
    engine_.communicator.set_timeout(kLongestWrite_s);
    for (;;) {
      int32_t number = kEndOfLending;
      REMUDA_TRY(engine_.communicator.broadcast(std::as_writable_bytes(std::span(&number, 1)), 0, label::kLentBlock));
      if (number == kEndOfLending) return {};
      if (number < 0 || size_t(number) >= blocks()) return failed(fmt::format("rank 0 asks for block {}", number));
      REMUDA_TRY(parts_.fill(size_t(number), 0, {}, {}, false));
    }
  });
  const Result<void> lent = engine_.queue.drain();
  engine_.communicator.set_timeout(engine_.timeout_s);
  return lent;
}

}  // namespace remuda::train
