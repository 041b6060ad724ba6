#include "train/sharded_optimizer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "profile/recorder.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/sharded_blocks.h"
#include "train/state_move.h"

namespace remuda::train {
namespace {

/// On a CPU an update goes over the parameters in blocks whose values, gradient and state stay in the second-level
/// cache from one operation to the next: 640 KiB for AdamW in float32.
constexpr size_t kCacheBlock = 32 << 10;
/// Elsewhere, by so many values at a time: 64 MiB of scratch memory in float32, and enough work that starting it takes
/// no time.
constexpr size_t kSlice = 16 << 20;

torch::Tensor narrow(const torch::Tensor& tensor, size_t begin, size_t size) {
  return tensor.narrow(0, int64_t(begin), int64_t(size));
}

/// The buckets among these that are of whole parameters.
comm::Chunk whole(const FlatLayout& layout, comm::Chunk buckets) {
  const size_t end = layout.whole_buckets();
  return {std::min(buckets.begin, end), std::min(buckets.end, end)};
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(Engine& engine, const Options& options)
    : engine_(engine),
      options_(options),
      rank_(engine.communicator.rank()),
      kept_(room_for(engine.flat.layout())),
      counts_(engine.flat.layout()) {
  arrivals_.resize(engine.flat.layout().whole_buckets());
}

ShardedOptimizer::Kept ShardedOptimizer::room_for(const FlatLayout& layout) const {
  Kept kept;
  size_t owned = 0, owned_of_whole = 0;
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket) {
    kept.begin.push_back(owned);
    owned += layout.own(bucket, rank_).size();
    if (!is_block(bucket)) owned_of_whole = owned;
  }
  const auto zeros = torch::zeros({int64_t(owned)}, here(engine_.flat.values()).options());
  for (size_t i = 0; i < options_.rule.states(); ++i) kept.states.push_back(zeros.clone());
  if (options_.average > 0) kept.average = zeros.clone();
  if (engine_.flat.rounds() || is_on_host()) kept.unrounded = narrow(zeros, 0, owned_of_whole).clone();
  if (options_.rule.needs_scratch() || kept.average.defined())
    kept.scratch = torch::empty({int64_t(std::min(owned, at_once()))}, zeros.options());
  return kept;
}

Result<bool> ShardedOptimizer::divide(std::span<const double> state_shares) {
  REMUDA_CHECK(!is_arriving_ && !engine_.blocks, "all parameters are whole, and there");
  FlatLayout layout = engine_.flat.layout();
  layout.divide(state_shares);
  const bool is_new = steps() == 0;  // nothing is kept yet: room for one of them is enough
  if (is_new)
    kept_ = {};
  else
    REMUDA_TRY(free_host());
  std::optional<Kept> room;
  try {
    room = room_for(layout);
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
  }
  REMUDA_ASSIGN(const std::vector<int> have_room, gather_all(engine_.communicator, room ? 1 : 0, label::kStateMove));
  if (std::ranges::find(have_room, 0) != have_room.end()) {
    room.reset();
    if (is_new) kept_ = room_for(engine_.flat.layout());
    return false;
  }
  if (!is_new) REMUDA_TRY(move_to(*room, layout));
  kept_ = std::move(*room);
  engine_.flat.set_owners(std::move(layout));
  if (!is_new && !engine_.flat.rounds()) take_over();
  return true;
}

/// Collective.
Result<void> ShardedOptimizer::move_to(const Kept& kept, const FlatLayout& layout) {
  const auto move = [&](const torch::Tensor& from, const torch::Tensor& to) {
    return move_state(engine_.communicator, engine_.flat.layout(), layout, from, to);
  };
  for (size_t i = 0; i < kept.states.size(); ++i) REMUDA_TRY(move(kept_.states[i], kept.states[i]));
  if (kept.average.defined()) REMUDA_TRY(move(kept_.average, kept.average));
  if (engine_.flat.rounds()) REMUDA_TRY(move(kept_.unrounded, kept.unrounded));
  return {};
}

size_t ShardedOptimizer::state_bytes() const {
  size_t bytes = 0;
  for (const auto& kept : {kept_.average, kept_.unrounded}) bytes += kept.defined() ? kept.nbytes() : 0;
  for (const auto& state : kept_.states) bytes += state.nbytes();
  return bytes;
}

size_t ShardedOptimizer::at_once() const { return is_on_cpu() ? kCacheBlock : kSlice; }

void ShardedOptimizer::reset() {
  for (auto& state : kept_.states) state.zero_();
  counts_ = ParameterSteps(engine_.flat.layout());
}

void ShardedOptimizer::add(Batch& batch, size_t bucket, comm::Chunk range) const {
  const size_t in_part = range.begin - engine_.flat.layout().own(bucket, rank_).begin;
  const size_t state_at = kept_.begin[bucket] + in_part;
  batch.count += range.size();
  batch.values.push_back(narrow(own_values(bucket), in_part, range.size()));
  batch.gradients.push_back(narrow(own_gradients(bucket), in_part, range.size()));
  batch.states.resize(kept_.states.size());
  for (size_t i = 0; i < kept_.states.size(); ++i)
    batch.states[i].push_back(narrow(kept_.states[i], state_at, range.size()));
  if (kept_.average.defined()) batch.averages.push_back(narrow(kept_.average, state_at, range.size()));
}

/// `step`: of these parameters, 0 where it is not theirs: then only the average goes on.
void ShardedOptimizer::apply(Batch batch, double gradient_factor, const GroupSettings& settings, int64_t step) const {
  if (batch.values.empty()) return;
  batch.scratch = kept_.scratch;
  if (step > 0) update(options_.rule, settings, step, gradient_factor, batch);
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < batch.averages.size(); ++i) {
    if (steps() == 1)
      batch.averages[i].copy_(batch.values[i]);
    else
      batch.averages[i].mul_(options_.average).add_(batch.values[i], 1 - options_.average);
  }
}

/// Blocks of at_once() values, or lists of smaller ones that are as many together.
void ShardedOptimizer::update_own(comm::Chunk buckets, double gradient_factor,
                                  const std::vector<GroupSettings>& settings) {
  const size_t most = at_once();
  std::map<std::pair<size_t, int64_t>, Batch> batches;  // by group and step
  for (size_t bucket = buckets.begin; bucket < buckets.end; ++bucket) {
    for (const ParameterSteps::Run& run : counts_.runs(bucket, rank_)) {
      for (size_t begin = run.range.begin; begin < run.range.end; begin += most) {
        const comm::Chunk block{begin, std::min(run.range.end, begin + most)};
        Batch& batch = batches[{run.group, run.step}];
        if (batch.count + block.size() > most)
          apply(std::exchange(batch, {}), gradient_factor, settings[run.group], run.step);
        add(batch, bucket, block);
      }
    }
  }
  for (auto& [key, batch] : batches) apply(std::move(batch), gradient_factor, settings[key.first], key.second);
}

/// The values that this rank updates: of a bucket, its own.
torch::Tensor ShardedOptimizer::own_values(size_t bucket) const {
  const FlatLayout& layout = engine_.flat.layout();
  if (is_block(bucket)) return engine_.blocks->parts().values(bucket - layout.whole_buckets());
  const comm::Chunk own = layout.own(bucket, rank_);
  if (kept_.unrounded.defined()) return narrow(kept_.unrounded, kept_.begin[bucket], own.size());
  return narrow(engine_.flat.values().device(), own.begin, own.size());
}

/// And their gradients.
torch::Tensor ShardedOptimizer::own_gradients(size_t bucket) const {
  const FlatLayout& layout = engine_.flat.layout();
  if (is_block(bucket)) return engine_.blocks->parts().sums(bucket - layout.whole_buckets());
  return narrow(here(engine_.flat.gradients()), layout.own(bucket, rank_));
}

/// The values there are.
void ShardedOptimizer::take_over() {
  if (!kept_.unrounded.defined()) return;
  const torch::NoGradGuard no_grad;
  for (size_t bucket = 0; bucket < engine_.flat.layout().whole_buckets(); ++bucket) {
    const comm::Chunk own = engine_.flat.layout().own(bucket, rank_);
    own_values(bucket).copy_(narrow(engine_.flat.values().device(), own.begin, own.size()));
  }
}

void ShardedOptimizer::begin_step(const std::vector<char>& used) {
  counts_.begin(used);
  if (steps() == 1) take_over();
}

void ShardedOptimizer::round_own(comm::Chunk buckets) {
  if (!kept_.unrounded.defined()) return;
  const torch::NoGradGuard no_grad;
  for (size_t bucket = buckets.begin; bucket < buckets.end; ++bucket) {
    const comm::Chunk own = engine_.flat.layout().own(bucket, rank_);
    narrow(here(engine_.flat.sent()), own.begin, own.size()).copy_(own_values(bucket));
  }
}

/// The model computes with what was sent.
void ShardedOptimizer::widen(comm::Chunk range) {
  if (!engine_.flat.rounds()) return;
  const torch::NoGradGuard no_grad;
  narrow(engine_.flat.values().device(), range.begin, range.size())
      .copy_(narrow(engine_.flat.sent().device(), range.begin, range.size()));
}

/// Waits until the device has read what it was last sent from memory of the host, which owners are about to write.
Result<void> ShardedOptimizer::free_host() const {
  return is_on_host() ? engine_.ops.wait(engine_.ops.here(), "the copy of parameters", engine_.timeout_s)
                      : Result<void>();
}

Result<void> ShardedOptimizer::step_alone(double gradient_factor, const std::vector<GroupSettings>& settings) {
  const FlatLayout& layout = engine_.flat.layout();
  const comm::Chunk all{0, layout.buckets()};
  begin_step({});
  if (is_on_host()) {
    const Moment there = engine_.flat.gradients().to_host({0, layout.whole_extent()});
    REMUDA_TRY(engine_.ops.wait(there, "the copy of gradients", engine_.timeout_s));
  }
  update_own(all, gradient_factor, settings);
  round_own(whole(layout, all));
  for (size_t bucket = 0; is_on_host() && bucket < layout.whole_buckets(); ++bucket)
    engine_.flat.sent().to_device(layout.own(bucket, rank_));
  if (is_on_host()) engine_.flat.sent().join();
  for (size_t bucket = 0; bucket < layout.whole_buckets(); ++bucket) widen(layout.own(bucket, rank_));
  return engine_.ops.wait(engine_.ops.here(), "an update", engine_.timeout_s);
}

Result<void> ShardedOptimizer::step(double gradient_factor, const std::vector<GroupSettings>& settings,
                                    const std::vector<char>& used) {
  REMUDA_TRY(update_and_send(gradient_factor, settings, used));
  return arrive(engine_.flat.sent());
}

Result<void> ShardedOptimizer::start_step(double gradient_factor, const std::vector<GroupSettings>& settings,
                                          const std::vector<char>& used) {
  wait_s_ = 0;
  is_arriving_ = true;
  return update_and_send(gradient_factor, settings, used);
}

bool ShardedOptimizer::is_there(size_t bucket) const {
  return arrivals_[bucket].is_taken || engine_.queue.is_done(arrivals_[bucket].work);
}

void ShardedOptimizer::take(size_t bucket) {
  Arrival& arrival = arrivals_[bucket];
  if (std::exchange(arrival.is_taken, true) || !engine_.queue.wait(arrival.work)) return;
  engine_.ops.after(arrival.there);
  widen(engine_.flat.layout().bucket(bucket));
}

Result<void> ShardedOptimizer::arrive() {
  if (!std::exchange(is_arriving_, false)) return {};
  return arrive(engine_.flat.sent());
}

Result<void> ShardedOptimizer::update_and_send(double gradient_factor, const std::vector<GroupSettings>& settings,
                                               const std::vector<char>& used) {
  const profile::Span span("update");
  REMUDA_TRY(free_host());
  begin_step(used);
  const size_t buckets = engine_.flat.layout().buckets();
  REMUDA_TRY(engine_.sums->take_sums());
  if (engine_.blocks) engine_.blocks->parts().take_sums();
  const size_t at_once = is_on_cpu() ? 1 : buckets;  // a CPU sends one while it computes the next
  for (size_t end = buckets; end > 0; end -= at_once) {
    const comm::Chunk some{end - at_once, end};
    update_own(some, gradient_factor, settings);
    send_rounded(whole(engine_.flat.layout(), some));
  }
  if (engine_.blocks) engine_.blocks->parts().give_values();
  if (!is_on_host() && engine_.waits_for_updates)
    REMUDA_TRY(engine_.ops.wait(engine_.ops.here(), "an update", engine_.timeout_s));
  engine_.before_wait();
  return {};
}

void ShardedOptimizer::send_rounded(comm::Chunk buckets) {
  round_own(buckets);
  send_to_all(buckets, engine_.flat.sent());
}

/// The last one first, as its parameters are those that the next forward pass reads first.
void ShardedOptimizer::send_to_all(comm::Chunk buckets, Mirror& values) {
  engine_.before_send();
  const std::vector<Moment> given = engine_.values->give_values(buckets, values);
  for (size_t bucket = buckets.end; bucket-- > buckets.begin;) {
    Arrival& arrival = arrivals_[bucket] = {.is_taken = false};
    const Moment& moment = given[bucket - buckets.begin];
    arrival.work = engine_.queue.push([this, bucket, &values, &arrival, moment]() -> Result<void> {
      REMUDA_ASSIGN(arrival.there, engine_.values->gather(bucket, values, moment));
      return {};
    });
  }
}

Result<void> ShardedOptimizer::arrive(Mirror& values) {
  {
    profile::TimedSpan span("wait");
    engine_.queue.push([this] { return engine_.values->finish_gather(); });
    REMUDA_TRY(engine_.queue.drain());
    wait_s_ = span.end();
  }
  engine_.values->take_values(values);
  for (size_t bucket = 0; bucket < arrivals_.size(); ++bucket) {
    const bool was_taken = std::exchange(arrivals_[bucket].is_taken, true);
    if (!was_taken && &values != &engine_.flat.values()) widen(engine_.flat.layout().bucket(bucket));
  }
  return {};
}

Result<void> ShardedOptimizer::swap_average() {
  if (!kept_.average.defined() || steps() == 0) return {};
  REMUDA_TRY(free_host());
  const torch::NoGradGuard no_grad;
  const FlatLayout& layout = engine_.flat.layout();
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket) {
    const torch::Tensor values = own_values(bucket);
    for (int64_t begin = 0; begin < values.numel(); begin += kept_.scratch.numel()) {
      const int64_t count = std::min(kept_.scratch.numel(), values.numel() - begin);
      torch::Tensor value = values.narrow(0, begin, count), kept = kept_.scratch.narrow(0, 0, count);
      torch::Tensor average = narrow(kept_.average, kept_.begin[bucket] + size_t(begin), size_t(count));
      kept.copy_(value);
      value.copy_(average);
      average.copy_(kept);
    }
  }
  return send_all();
}

Result<void> ShardedOptimizer::send_all() {
  if (engine_.blocks) engine_.blocks->parts().give_values();
  send_rounded({0, engine_.flat.layout().whole_buckets()});
  return arrive(engine_.flat.sent());
}

std::vector<Owned> ShardedOptimizer::owned() {
  if (steps() == 0) take_over();
  const FlatLayout& layout = engine_.flat.layout();
  std::vector<Owned> all;
  for (size_t i = 0; i < layout.parameters(); ++i) {
    const comm::Chunk range = layout.own_of(i, rank_);
    if (range.size() == 0) continue;
    const size_t bucket = layout.bucket_of(i), in_part = range.begin - layout.own(bucket, rank_).begin;
    const size_t in_state = kept_.begin[bucket] + in_part;
    Owned one{i, range.begin - layout.offset(i), narrow(own_values(bucket), in_part, range.size())};
    for (const torch::Tensor& state : kept_.states) one.states.push_back(narrow(state, in_state, range.size()));
    if (kept_.average.defined()) one.average = narrow(kept_.average, in_state, range.size());
    all.push_back(std::move(one));
  }
  return all;
}

Result<void> ShardedOptimizer::resume(int64_t steps) {
  counts_.set_steps(steps);
  if (steps == 0) return send_owned();
  REMUDA_TRY(free_host());
  return send_all();
}

Result<void> ShardedOptimizer::send_unrounded() {
  return engine_.flat.rounds() && steps() > 0 ? send_owned() : Result<void>();
}

Result<void> ShardedOptimizer::send_owned() {
  REMUDA_TRY(free_host());
  const torch::NoGradGuard no_grad;
  const FlatLayout& layout = engine_.flat.layout();
  Mirror& values = engine_.flat.values();
  for (size_t bucket = 0; bucket < layout.whole_buckets(); ++bucket) {
    const comm::Chunk own = layout.own(bucket, rank_);
    if (kept_.unrounded.defined()) narrow(here(values), own.begin, own.size()).copy_(own_values(bucket));
  }
  if (engine_.blocks) engine_.blocks->parts().give_values();
  send_to_all({0, layout.whole_buckets()}, values);
  return arrive(values);
}

}  // namespace remuda::train
