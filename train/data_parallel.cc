#include "train/data_parallel.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/check.h"
#include "profile/recorder.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/one_bit_adam.h"
#include "train/power_sgd.h"
#include "train/ready_order.h"

namespace remuda::train {
namespace {

/// Of the squares of all ranks' gradients: up to here, no sum of them is too large for float32, nor are the steps of
/// the compressed stage, whose directions are gradients divided by no less than epsilon.
constexpr double kMostSquares = 1e50;

/// What ranks hold of parameters of these sizes, of which the last ones are those of the blocks.
balance::StateBytes state_bytes(const std::vector<size_t>& sizes, torch::ScalarType type,
                                const ParallelOptions& options) {
  size_t of_blocks = 0, largest = 0;
  auto next = sizes.end();
  for (const auto& block : options.blocks) next -= long(block.size());
  for (const auto& block : options.blocks) {
    const size_t size = std::accumulate(next, next + long(block.size()), size_t{0});
    next += long(block.size());
    of_blocks += size;
    largest = std::max(largest, size);
  }
  const size_t count = std::accumulate(sizes.begin(), sizes.end(), size_t{0});
  const bool rounds = options.sent_as.value_or(type) != type;
  const size_t kept = options.rule.states() + (options.average > 0 ? 1 : 0) + (rounds ? 1 : 0);
  const size_t element = c10::elementSize(type);
  constexpr size_t kWithGradient = 2;
  return {.whole = double(element * kWithGradient * (count - of_blocks + ShardedParts::kRooms * largest)),
          .owned = double(element * (kept * count + kWithGradient * of_blocks))};
}

/// By the ranks' roles and the memory of their devices. Collective.
Result<std::vector<double>> shares_by_memory(comm::Communicator& communicator, double own_bytes,
                                             const std::vector<balance::Role>& roles,
                                             const balance::StateBytes& bytes) {
  REMUDA_ASSIGN(const std::vector<double> memory, gather_all(communicator, own_bytes, label::kMemory));
  std::vector<balance::StateOwner> owners;
  for (size_t rank = 0; rank < memory.size(); ++rank)
    owners.push_back({roles.empty() ? balance::Role::compute : roles[rank], memory[rank]});
  return balance::state_parts(owners, bytes);
}

/// Collective. As a trial backward pass shows it.
Result<ReadyOrder> learned_order(comm::Communicator& communicator, const std::vector<torch::Tensor>& parameters,
                                 const std::function<void()>& trial_backward, NormExchange* norms) {
  const auto trial = [&] { norms ? norms->learn(trial_backward) : trial_backward(); };
  REMUDA_ASSIGN(ReadyOrder ready, ready_order(communicator, parameters, trial));
  if (norms) REMUDA_TRY(norms->agree());
  return ready;
}

/// First the parameters that no block has, the last ones first, and then block by block.
ReadyOrder order_by_blocks(const std::vector<torch::Tensor>& parameters,
                           const std::vector<std::vector<torch::Tensor>>& blocks) {
  std::unordered_map<at::TensorImpl*, int64_t> numbers;
  for (const torch::Tensor& parameter : parameters)
    numbers.emplace(parameter.unsafeGetTensorImpl(), int64_t(numbers.size()));
  std::vector<int64_t> of_blocks;
  std::vector<bool> is_whole(parameters.size(), true);
  for (const auto& block : blocks)
    for (const torch::Tensor& parameter : block) {
      of_blocks.push_back(numbers.at(parameter.unsafeGetTensorImpl()));
      is_whole[size_t(of_blocks.back())] = false;
    }
  ReadyOrder order{{}, std::vector<int64_t>(parameters.size(), 1)};
  for (size_t i = parameters.size(); i > 0; --i)
    if (is_whole[i - 1]) order.order.push_back(int64_t(i - 1));
  order.order.insert(order.order.end(), of_blocks.begin(), of_blocks.end());
  return order;
}

}  // namespace

Result<std::unique_ptr<DataParallel>> DataParallel::create(comm::Communicator& communicator, const DeviceOps& ops,
                                                           std::vector<torch::Tensor> parameters,
                                                           const std::function<void()>& trial_backward,
                                                           ParallelOptions options) {
  REMUDA_CHECK(options.group_of.empty() || options.group_of.size() == parameters.size(), "each parameter has a group");
  if (ops.is_synchronous()) options.updates_on = UpdatesOn::device;
  REMUDA_TRY(check_models(communicator, parameters, options.names));
  ReadyOrder ready = order_by_blocks(parameters, options.blocks);
  if (options.blocks.empty()) {
    REMUDA_ASSIGN(ready, learned_order(communicator, parameters, trial_backward, options.norms));
  }
  std::vector<torch::Tensor> ordered;
  std::vector<size_t> sizes, groups;
  std::vector<int64_t> times;
  std::vector<std::string> names;
  for (const int64_t i : ready.order) {
    times.push_back(ready.times[size_t(i)]);
    ordered.push_back(parameters[size_t(i)]);
    names.push_back(name_of_parameter(options.names, size_t(i)));
    sizes.push_back(size_t(ordered.back().numel()));
    groups.push_back(options.group_of.empty() ? 0 : options.group_of[size_t(i)]);
  }
  const torch::ScalarType type = ordered[0].scalar_type();
  const balance::StateBytes needs = state_bytes(sizes, type, options);
  if (options.state_shares.empty()) {
    REMUDA_ASSIGN(options.state_shares,
                  shares_by_memory(communicator, ops.memory_bytes() / options.ranks_on_device, options.roles, needs));
  }
  FlatLayout::Options division{
      c10::elementSize(type), options.bucket_bytes, std::move(options.state_shares), {}, false};
  division.equal_parts = options.equal_parts;
  for (const auto& block : options.blocks) division.blocks.push_back(block.size());
  FlatLayout layout(sizes, groups, division);
  const SentAs sent_as{options.sent_as.value_or(type), options.gradients_sent_as.value_or(type)};
  REMUDA_ASSIGN(FlatParameters flat,
                FlatParameters::create(communicator, ops, std::move(ordered), std::move(layout), sent_as));
  const std::vector<std::vector<torch::Tensor>> blocks = std::move(options.blocks);
  const UpdatesOn updates_on = options.updates_on;
  std::unique_ptr<DataParallel> parallel(
      new DataParallel(communicator, ops, std::move(flat), std::move(times), std::move(options)));
  parallel->state_needs_ = needs;
  parallel->names_ = std::move(names);
  if (!blocks.empty()) REMUDA_TRY(parallel->shard(blocks, updates_on));
  REMUDA_TRY(parallel->choose_exchange());
  REMUDA_TRY(parallel->share_values());
  return parallel;
}

/// Collective.
Result<void> DataParallel::shard(const std::vector<std::vector<torch::Tensor>>& blocks, UpdatesOn updates_on) {
  REMUDA_CHECK(!norms_ && !flat_.rounds(), "what sharded blocks go together with");
  REMUDA_ASSIGN(parts_, ShardedParts::create(communicator_, ops_, flat_.layout(), blocks, updates_on));
  blocks_ = std::make_unique<ShardedBlocks>(engine_, *parts_, pass_waits_);
  engine_.blocks = blocks_.get();
  reducer_->note_blocks();
  return {};
}

DataParallel::DataParallel(comm::Communicator& communicator, const DeviceOps& ops, FlatParameters flat,
                           std::vector<int64_t> times, ParallelOptions options)
    : communicator_(communicator),
      ops_(ops),
      flat_(std::move(flat)),
      norms_(options.norms),
      rule_(options.rule),
      clip_norm_(options.clip_norm),
      average_(options.average),
      pass_waits_(std::move(options.pass_waits)),
      exchange_(options.collectives ? by_devices(communicator_, ops_, flat_, *options.collectives, options.updates_on)
                                    : by_host(communicator_, ops_, flat_, options.updates_on)),
      by_one_(by_one(ops_, flat_, options.updates_on, communicator_.rank())),
      engine_{communicator_,
              ops_,
              flat_,
              exchange_.get(),
              exchange_.get(),
              queue_,
              std::move(options.before_send),
              std::move(options.before_wait)},
      reducer_(std::make_unique<GradientReducer>(engine_, std::move(times))),
      optimizer_(std::make_unique<ShardedOptimizer>(
          engine_, ShardedOptimizer::Options{options.rule, options.average, options.updates_on})) {
  engine_.waits_for_updates = options.waits_for_updates;
}

Result<ReducedStep> DataParallel::reduce() {
  if (norms_) REMUDA_TRY(norms_->finish());
  if (blocks_) REMUDA_TRY(blocks_->finish());
  REMUDA_ASSIGN(StepTotals totals, reducer_->finish());
  wait_s_ = reducer_->wait_s();
  if (is_arriving()) {  // all are there, as they came before the sums: what is left is to take them
    REMUDA_TRY(optimizer_->arrive());
    wait_s_ += optimizer_->wait_s();
  }
  ReducedStep step{std::move(totals)};
  const auto& sum = step.totals;
  step.finite = std::isfinite(sum.loss_sum) && std::isfinite(sum.square_norm);
  if (compressed_) step.finite = step.finite && sum.square_norm < kMostSquares;
  step.stands = step.finite && !(sum.any_status() & kOutOfMemory) && sum.weight > 0;
  if (!step.stands) return step;
  step.norm = compressed_ ? NAN : std::sqrt(sum.square_norm) / sum.weight;
  step.gradient_factor = 1 / sum.weight;
  if (!compressed_) step.gradient_factor *= clip_factor(step.norm, clip_norm_);
  return step;
}

Result<void> DataParallel::update(const ReducedStep& step, const std::vector<GroupSettings>& settings) {
  REMUDA_CHECK(step.stands, "only a step that stands is applied");
  REMUDA_CHECK(settings.size() >= flat_.layout().groups(), "each parameter group has its settings");
  const auto take_step = [&](auto& optimizer) -> Result<void> {
    REMUDA_TRY(optimizer.step(step.gradient_factor, settings, step.totals.used));
    wait_s_ = optimizer.wait_s();
    return {};
  };
  if (compressed_) return take_step(*compressed_);
  REMUDA_TRY(take_step(*optimizer_));
  others_lag_ = false;  // all values were sent
  return {};
}

Result<void> DataParallel::start_update(const ReducedStep& step, const std::vector<GroupSettings>& settings) {
  REMUDA_CHECK(step.stands && settings.size() >= flat_.layout().groups(), "what update() asks for");
  REMUDA_CHECK(optimizer_ && !blocks_, "all parameters are sent as they are");
  sent_bytes_ = communicator_.sent_bytes();
  wait_s_ = 0;
  if (!is_of_one()) return optimizer_->start_step(step.gradient_factor, settings, step.totals.used);
  BucketExchange* const to_all = std::exchange(engine_.values, by_one_.get());
  const Result<void> made = optimizer_->step(step.gradient_factor, settings, step.totals.used);
  engine_.values = to_all;
  others_lag_ = communicator_.size() > 1;
  return made;
}

Result<void> DataParallel::arrive() {
  if (is_arriving()) REMUDA_TRY(optimizer_->arrive());
  if (!std::exchange(others_lag_, false)) return {};
  REMUDA_TRY(optimizer_->send_all());
  wait_s_ += optimizer_->wait_s();
  return {};
}

Result<void> DataParallel::set_silent(const std::vector<bool>& ranks) {
  silent_ = ranks;
  exchange_->set_silent(ranks);
  by_one_->set_silent(ranks);
  return choose_exchange();
}

/// How the next steps add gradients up, by who computes and who owns what. All ranks choose the same.
Result<void> DataParallel::choose_exchange() {
  if (compressed_ || blocks_) return {};
  const FlatLayout& layout = flat_.layout();
  const std::vector<bool> silent = silent_.empty() ? std::vector<bool>(size_t(communicator_.size())) : silent_;
  const int one = int(std::ranges::find(silent, false) - silent.begin());
  bool has_all = std::ranges::count(silent, false) == 1;
  for (size_t bucket = 0; has_all && bucket < layout.buckets(); ++bucket)
    has_all = layout.own(bucket, one).size() == layout.bucket(bucket).size();
  if (!has_all && others_lag_) REMUDA_TRY(arrive());
  engine_.sums = has_all ? by_one_.get() : exchange_.get();
  engine_.values = communicator_.size() == 1 ? by_one_.get() : exchange_.get();
  return {};
}

std::unique_ptr<ParameterWatch> DataParallel::watch_parameters() {
  if (!is_arriving()) return nullptr;
  return std::make_unique<ParameterWatch>(flat_.values().device(), flat_.layout(), [this](size_t bucket) {
    if (optimizer_->is_there(bucket)) return optimizer_->take(bucket);
    pass_waits_.before_wait();
    profile::TimedSpan span("wait");
    optimizer_->take(bucket);
    pass_waits_.waited(span.end());
  });
}

uint64_t DataParallel::sent_bytes() const {
  const uint64_t whole = is_arriving() ? sent_bytes_ : communicator_.sent_bytes();
  return whole + (compressed_ ? compressed_->sent_bytes() : 0);
}

Result<void> DataParallel::send_gradients_as(torch::ScalarType type) {
  REMUDA_TRY(arrive());
  return flat_.send_gradients_as(communicator_, ops_, type);
}

Result<void> DataParallel::swap_average() {
  REMUDA_TRY(arrive());
  return optimizer_ ? optimizer_->swap_average() : compressed_->swap_average();
}

Result<void> DataParallel::send_unrounded() {
  REMUDA_TRY(arrive());
  return optimizer_ ? optimizer_->send_unrounded() : Result<void>();
}

Result<void> DataParallel::compress(size_t rank) {
  REMUDA_TRY(arrive());
  REMUDA_CHECK(optimizer_ && (rank > 0 || (clip_norm_ == 0 && average_ == 0)), "what compress() asks for");
  const PowerSgd::Options options{rank, clip_norm_, average_};
  REMUDA_ASSIGN(compressed_, rank > 0 ? PowerSgd::create(engine_, rule_, options, *optimizer_)
                                      : OneBitAdam::create(engine_, rule_, *optimizer_));
  optimizer_.reset();
  exchange_ = kept_on_host(ops_, flat_);
  exchange_->set_timeout(engine_.timeout_s);
  engine_.sums = engine_.values = exchange_.get();
  return {};
}

Result<bool> DataParallel::divide(std::span<const double> state_shares) {
  REMUDA_CHECK(may_divide(), "owners may change");
  REMUDA_TRY(arrive());
  REMUDA_ASSIGN(const bool are_divided, optimizer_->divide(state_shares));
  REMUDA_TRY(choose_exchange());
  return are_divided;
}

ShardedOptimizer& DataParallel::optimizer() {
  REMUDA_CHECK(optimizer_, "it is not needed once the exchange is compressed");
  return *optimizer_;
}

OwnedState& DataParallel::state() {
  if (compressed_) return *compressed_;
  return *optimizer_;
}

void DataParallel::set_loss_scale(double loss_scale) {
  if (norms_) norms_->set_loss_scale(loss_scale);
  if (blocks_) blocks_->set_loss_scale(loss_scale);
}

std::vector<torch::Tensor> DataParallel::own_values() const {
  const FlatLayout& layout = flat_.layout();
  std::vector<torch::Tensor> all;
  for (size_t bucket = 0; bucket < layout.whole_buckets(); ++bucket)
    all.push_back(narrow(flat_.values().device(), layout.own(bucket, communicator_.rank())));
  if (parts_) all.push_back(parts_->all_values());
  return all;
}

Result<torch::Tensor> DataParallel::borrow(const torch::Tensor& parameter) {
  for (size_t block = 0; block < parts_->blocks(); ++block) {
    const auto& parameters = parts_->block(block).parameters();
    for (size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].is_same(parameter)) {
        REMUDA_ASSIGN(const torch::Tensor values, blocks_->borrow(block));
        return parts_->block(block).view(values, i);
      }
  }
  return parameter;
}

size_t DataParallel::parameter_bytes() const {
  const size_t of_blocks = parts_ && (ops_.is_synchronous() || !parts_->is_on_host()) ? parts_->value_bytes() : 0;
  return flat_.values().device().nbytes() + of_blocks;
}

size_t DataParallel::gradient_bytes() const {
  const size_t of_blocks = parts_ && (ops_.is_synchronous() || !parts_->is_on_host()) ? parts_->sum_bytes() : 0;
  return flat_.gradients().device().nbytes() + of_blocks;
}

size_t DataParallel::shared_bytes() const { return flat_.bytes() + (parts_ ? parts_->room_bytes() : 0); }

void DataParallel::set_timeout(double seconds) {
  communicator_.set_timeout(seconds);
  if (norms_) norms_->set_timeout(seconds);
  exchange_->set_timeout(seconds);
  by_one_->set_timeout(seconds);
  engine_.timeout_s = seconds;
  if (parts_) parts_->set_timeout(seconds);
  if (compressed_) compressed_->set_timeout(seconds);
}

Result<std::span<std::byte>> DataParallel::values_on_host() {
  REMUDA_TRY(arrive());
  Mirror& values = flat_.values();
  REMUDA_TRY(
      ops_.wait(values.to_host({0, flat_.layout().whole_extent()}), "the copy of all parameters", engine_.timeout_s));
  return values.host_bytes();
}

Result<void> DataParallel::share_values() {
  REMUDA_TRY(arrive());
  REMUDA_TRY(ops_.wait(ops_.here(), "its own values", engine_.timeout_s));  // which rank 0's are to replace
  if (communicator_.rank() == 0) REMUDA_TRY(values_on_host());
  REMUDA_TRY(communicator_.broadcast(flat_.values().host_bytes(), 0, label::kValues));
  flat_.values().to_device({0, flat_.layout().whole_extent()});
  flat_.values().join();
  return {};
}

Result<void> DataParallel::check_parameters(int step) {
  REMUDA_ASSIGN(const std::span<std::byte> bytes, values_on_host());
  const FlatLayout& layout = flat_.layout();
  const size_t element = bytes.size() / std::max<size_t>(1, layout.whole_extent());
  std::vector<NamedBytes> parameters;
  for (size_t i = 0; i < layout.whole_parameters(); ++i) {
    parameters.push_back({names_[i], bytes.subspan(layout.offset(i) * element, layout.size(i) * element)});
  }
  return check_values(communicator_, bytes, parameters, ops_.device().type(), step);
}

}  // namespace remuda::train
