#include "train/data_parallel.h"

#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <span>

#include "base/clock.h"
#include "parallel/check_options.h"
#include "parallel/group_state.h"
#include "parallel/mean_loss.h"
#include "parallel/module_view.h"
#include "parallel/parts.h"
#include "parallel/raise.h"
#include "parallel/synchronized_norms.h"
#include "train/agreement.h"
#include "train/device/collectives.h"
#include "train/evaluate.h"
#include "train/labels.h"
#include "train/local_step.h"
#include "train/model/recompute.h"
#include "train/precision.h"

namespace remuda::parallel {
namespace {

train::UpdateRule rule_of(const Options& options) {
  using Kind = train::UpdateRule::Kind;
  if (const auto* adamw = std::get_if<AdamW>(&options.optimizer))
    return {.kind = Kind::adamw, .beta1 = adamw->beta1, .beta2 = adamw->beta2, .epsilon = adamw->epsilon};
  return {.kind = Kind::sgd, .momentum = std::get<Sgd>(options.optimizer).momentum};
}

void check_weight(double weight) {
  if (!(std::isfinite(weight) && weight >= 0))
    raise_usage(fmt::format("the weight {} is no number of losses; it must be 0 or more", weight));
}

/// Why a step was not applied.
std::string why_skipped(const train::ReducedStep& step) {
  if (const int rank = step.totals.first_with(train::kOutOfMemory); rank >= 0)
    return fmt::format("rank {} gave up its part of the step", rank);
  if (!step.finite) return "the loss or a gradient is infinite or not a number";
  return "no rank had a sample: all weights are 0";
}

/// For parameters in memory of the group, which may end before their module does.
void give_own_memory(const std::vector<torch::Tensor>& parameters) {
  try {
    const torch::NoGradGuard no_grad;
    for (const torch::Tensor& parameter : parameters) parameter.set_data(parameter.detach().clone());
  } catch (const std::exception&) {
    return;  // a device that is lost: there are no values to keep
  }
}

}  // namespace

struct DataParallel::Impl {
  using Norms = std::vector<std::shared_ptr<SynchronizedBatchNormImpl>>;
  Impl(std::shared_ptr<GroupState> its_group, ModuleView view, Norms its_norms, const Options& its_options);
  ~Impl();
  Impl(const Impl&) = delete;

  comm::Communicator& communicator() { return *group->communicator; }
  void start_pass(double weight);
  void accumulate(double weight);
  void begin(double weight);
  train::ReducedStep reduce(const torch::Tensor& loss);
  void update(const train::ReducedStep& step, double learning_rate);
  void look_at(const torch::Tensor& loss);
  void shrink_part_of(int rank);
  void begin_to_move_state();
  void move_state();

  const std::shared_ptr<GroupState> group;
  const Options options;
  train::FailedBackward failed;
  Parts parts;
  SynchronizedNorms norms;
  comm::OpenedCollectives collectives;
  std::unique_ptr<train::DataParallel> engine;
  ModuleWatch module;
  torch::ScalarType compute_type = torch::kFloat;
  train::LossScale loss_scale;
  double most_units = 0;              ///< of all ranks in one step so far, of which the loss scale makes a mean
  std::optional<double> loss_factor;  ///< of all backward passes of the step under way
  bool moves_state = false;           ///< to where it is updated faster
  bool begun = false, given_up = false;
  bool expects_backward = false;        ///< after begin(), which was told of losses
  unsigned misuse = 0;                  ///< StepStatus, of the losses of the step under way
  double pass_weight = 0;               ///< of the backward pass under way
  double accumulated = 0;               ///< weight of the step's earlier backward passes
  double since_average = 0;             ///< weight of the steps since average_buffers()
  double computing_since_s = kNever_s;  ///< kNever_s: not measured
};

DataParallel::Impl::Impl(std::shared_ptr<GroupState> its_group, ModuleView view, Norms its_norms,
                         const Options& its_options)
    : group(std::move(its_group)),
      options(its_options),
      parts(communicator().rank(), communicator().size(), options.shares, options.micro_batch),
      norms(std::move(its_norms)) {
  group->require_no_step("DataParallel's constructor");
  Candidate mine = candidate_of(options, view, group->ops.device());
  mine.norms = norms.count();
  check_options(communicator(), mine);
  norms.connect(communicator(), {.waited = [this](double seconds) {
                  if (computing_since_s != kNever_s) computing_since_s += seconds;
                  parts.waited(seconds);
                }});
  compute_type = mine.compute_type;
  collectives = {nullptr, "Options::device_collectives is false"};
  if (options.device_collectives)
    collectives = or_raise(
        train::open_collectives(communicator(), group->ops, {.largest_bytes = size_t(options.bucket_mib * (1 << 20))}));
  const bool host = options.optimizer_on_host;
  std::vector<torch::Tensor> tensors;
  std::vector<std::string> names;
  for (const auto& one : mine.parameters) {
    tensors.push_back(one.tensor);
    names.push_back(one.name);
  }
  train::ParallelOptions settings{.bucket_bytes = options.bucket_mib * (1 << 20),
                                  .rule = rule_of(options),
                                  .group_of = std::move(mine.groups),
                                  .names = std::move(names),
                                  .clip_norm = options.clip_norm,
                                  .average = options.average,
                                  .updates_on = host ? train::UpdatesOn::host : train::UpdatesOn::device,
                                  .state_shares = options.state_shares,
                                  .collectives = collectives.collectives.get(),
                                  .norms = norms.exchange(),
                                  .before_wait = [this] {
                                    if (computing_since_s != kNever_s) parts.updated(monotonic_s() - computing_since_s);
                                  }};
  // Between devices they would be added up in 16 bits, too.
  if (options.gradients == Precision::bf16 && communicator().size() > 1 && !collectives.collectives)
    settings.gradients_sent_as = torch::kBFloat16;
  const auto trial = options.trial ? options.trial : [] {};
  const ModuleWatch before(view);
  try {
    engine = or_raise(
        train::DataParallel::create(communicator(), group->ops, std::move(tensors), trial, std::move(settings)));
  } catch (...) {
    const std::vector<torch::Tensor> moved = before.moved();
    for (const torch::Tensor& parameter : moved) parameter.mutable_grad() = torch::Tensor();
    give_own_memory(moved);
    throw;
  }
  begin_to_move_state();
  module = ModuleWatch(std::move(view));
}

/// Leaves alone what another DataParallel has taken since, or the user has changed.
DataParallel::Impl::~Impl() {
  if (begun) {
    group->in_step = false;
    group->abandoned = communicator().size() > 1;
  }
  const train::FlatParameters& flat = engine->flat();
  for (size_t i = 0; i < flat.parameters().size(); ++i)
    if (flat.gradient_in_place(i)) flat.parameters()[i].mutable_grad() = torch::Tensor();
  engine.reset();
  give_own_memory(module.unmoved());
}

/// Before each backward pass of a step. Until a step has shown how many losses there are on all ranks, they count as
/// many as here on each.
void DataParallel::Impl::start_pass(double weight) {
  check_weight(weight);
  pass_weight = weight;
  if (const std::string change = module.change(); !change.empty())
    raise_usage(fmt::format("the model has changed since DataParallel was made: {}; make a new one for it", change));
  if (loss_factor) return;
  const double units = most_units > 0 ? most_units : weight * communicator().size();
  loss_factor = loss_scale.of(compute_type, units);
  if (norms.exchange()) norms.exchange()->set_loss_scale(*loss_factor);
}

void DataParallel::Impl::accumulate(double weight) {
  group->require_no_step("accumulate()");
  start_pass(weight);
  engine->accumulate();
  accumulated += weight;
  since_average += weight;
}

void DataParallel::Impl::begin(double weight) {
  if (begun) raise_usage("begin() was called twice; step() ends a step that was begun");
  group->require_no_step("begin() of another DataParallel");
  start_pass(weight);
  engine->set_timeout(group->timeout_s);
  engine->begin(parts.report(std::exchange(accumulated, 0) + weight), *loss_factor);
  begun = group->in_step = true;
  given_up = false;
  expects_backward = weight > 0;
  since_average += weight;
}

/// Remembers what is wrong with it, so that step() says so on all ranks.
void DataParallel::Impl::look_at(const torch::Tensor& loss) {
  if (pass_weight > 1 && is_mean(loss)) misuse |= train::kMeanLoss;
}

/// The time ends here that this rank computed: what follows waits for others.
train::ReducedStep DataParallel::Impl::reduce(const torch::Tensor& loss) {
  or_raise(group->ops.wait(group->ops.here(), "a step", group->timeout_s));
  if (moves_state && !options.optimizer_on_host && !group->ops.is_synchronous())
    parts.needed(group->ops.memory_bytes() - group->ops.free_bytes());
  if (loss.defined()) look_at(loss);
  if (expects_backward && !engine->any_ready() && !misuse)
    misuse = loss.defined() && !loss.requires_grad() ? train::kDetached : train::kNoBackward;
  if (const unsigned wrong = std::exchange(misuse, 0); !given_up) engine->report().status |= wrong;
  if (loss.defined() && !given_up) engine->report().loss_sum = loss.item<double>();
  if (computing_since_s != kNever_s) parts.computed(monotonic_s() - computing_since_s);
  auto reduced = engine->reduce();
  begun = group->in_step = false;
  loss_factor.reset();
  train::ReducedStep step = or_raise(std::move(reduced));
  parts.waited(engine->wait_s());
  parts.learn(step.totals);
  if (step.totals.any_status() & ~unsigned(train::kMoving)) return step;
  loss_scale.update(step.finite);
  most_units = std::max(most_units, step.totals.weight);
  return step;
}

void DataParallel::Impl::update(const train::ReducedStep& step, double learning_rate) {
  if (computing_since_s != kNever_s) computing_since_s = monotonic_s();
  or_raise(engine->update(step, {{learning_rate, options.weight_decay}, {learning_rate, 0}}));
  parts.waited(engine->wait_s());
}

/// Rank 0 decides, and all have to know before the next step.
void DataParallel::Impl::shrink_part_of(int rank) {
  if (!parts.in_use()) return;
  std::vector<int> shares(size_t(communicator().size()));
  if (communicator().rank() == 0) shares = parts.shrink(rank);
  or_raise(communicator().broadcast(std::as_writable_bytes(std::span(shares)), 0, train::label::kShares));
  parts.take(std::move(shares));
}

/// Collective. Where the program leaves it open who owns what, as it leaves the parts of a batch.
void DataParallel::Impl::begin_to_move_state() {
  moves_state = communicator().size() > 1 && options.shares.empty() && options.state_shares.empty();
  if (!moves_state) return;
  const std::vector<double> memory =
      or_raise(train::gather_all(communicator(), group->ops.memory_bytes(), train::label::kMemory));
  const train::FlatLayout& layout = engine->flat().layout();
  std::vector<balance::StateOwner> owners;
  std::vector<double> owned;
  for (int rank = 0; rank < communicator().size(); ++rank) {
    owners.push_back({.memory_bytes = memory[size_t(rank)]});
    owned.push_back(double(layout.owned(rank)) / double(layout.count()));
  }
  if (communicator().rank() == 0) parts.move_state(std::move(owners), engine->state_needs(), std::move(owned));
}

/// Collective, after a step.
void DataParallel::Impl::move_state() {
  std::vector<double> owned(size_t(communicator().size()));
  if (communicator().rank() == 0) owned = parts.next_state();
  or_raise(communicator().broadcast(std::as_writable_bytes(std::span(owned)), 0, train::label::kShares));
  if (!or_raise(engine->divide(owned))) parts.keep_state();
}

DataParallel::DataParallel(const Group& group, torch::nn::Module& module, const Options& options)
    : impl_(std::make_unique<Impl>(group.state(), view_of(module), synchronized_norms_of(module), options)) {}
DataParallel::DataParallel(const Group& group, torch::jit::Module& module, const Options& options)
    : impl_(std::make_unique<Impl>(group.state(), view_of(module), Impl::Norms{}, options)) {}
DataParallel::DataParallel(DataParallel&&) noexcept = default;
DataParallel& DataParallel::operator=(DataParallel&&) noexcept = default;
DataParallel::~DataParallel() = default;

DataParallel::Impl& DataParallel::impl() const {
  if (!impl_) raise_usage("this DataParallel was moved from; use the one that it was moved to");
  return *impl_;
}

Part DataParallel::my_part(int64_t batch) {
  impl().group->require_no_step("my_part()");
  const Part part = impl().parts.next(batch);
  impl().computing_since_s = monotonic_s();
  return part;
}

Part DataParallel::part_of(int64_t batch) const { return impl().parts.part_of(batch); }

void DataParallel::accumulate(double weight) { impl().accumulate(weight); }

void DataParallel::begin(double weight) { impl().begin(weight); }

void DataParallel::backward(const torch::Tensor& loss) {
  const auto factor = impl().loss_factor;
  if (!factor) raise_usage("backward() was called outside of a step; call it after begin() or accumulate()");
  impl().look_at(loss);
  if (!loss.requires_grad()) impl().misuse |= train::kDetached;
  if (loss.requires_grad()) (*factor == 1 ? loss : loss * *factor).backward();
}

void DataParallel::give_up() {
  if (!impl().begun) raise_usage("give_up() was called outside of a step; call it between begin() and step()");
  impl().engine->give_up(train::kOutOfMemory);
  impl().given_up = true;
  impl().failed.clear();
}

Step DataParallel::step(double learning_rate, const torch::Tensor& loss) {
  if (!impl().begun) raise_usage("step() was called without begin(); begin() comes before backward()");
  if (!std::isfinite(learning_rate)) raise_usage(fmt::format("the learning rate is {}", learning_rate));
  if (loss.defined() && loss.numel() != 1)
    raise_usage(fmt::format("the loss has {} elements; it must be the sum of this rank's losses", loss.numel()));
  impl().engine->report().learning_rate = learning_rate;
  const train::ReducedStep reduced = impl().reduce(loss);
  Step step{.applied = reduced.stands, .skipped = {}, .weight = reduced.totals.weight};
  if (step.weight > 0) step.loss = reduced.totals.loss_sum / step.weight;
  if (reduced.stands) {
    step.norm = reduced.norm;
    impl().update(reduced, learning_rate);
  } else {
    step.skipped = why_skipped(reduced);
    if (const int rank = reduced.totals.first_with(train::kOutOfMemory); rank >= 0) impl().shrink_part_of(rank);
  }
  if (reduced.totals.status[0] & train::kMoving) impl().move_state();
  impl().computing_since_s = kNever_s;
  return step;
}

void DataParallel::swap_average() {
  impl().group->require_no_step("swap_average()");
  if (!(impl().options.average > 0)) raise_usage("there is no average to swap: Options::average is 0");
  or_raise(impl().engine->swap_average());
}

void DataParallel::average_buffers() {
  impl().group->require_no_step("average_buffers()");
  std::vector<torch::Tensor> buffers;
  for (const auto& one : impl().module.view().buffers()) buffers.push_back(one.tensor);
  or_raise(train::average_buffers(impl().communicator(), buffers, std::exchange(impl().since_average, 0)));
}

void DataParallel::check() const {
  impl().group->require_no_step("check()");
  or_raise(impl().engine->check_parameters(impl().parts.steps()));
}

std::string DataParallel::precision() const { return train::precision_name(impl().compute_type); }

std::string DataParallel::device_library() const {
  const comm::OpenedCollectives& opened = impl().collectives;
  return opened.collectives ? opened.collectives->name() : "none: " + opened.why_not;
}

size_t DataParallel::state_bytes() const { return impl().engine->optimizer().state_bytes(); }

struct Autocast::Impl {
  train::Autocast active;
};

Autocast::Autocast(const DataParallel& parallel)
    : impl_(new Impl{{parallel.impl().group->ops.device(), parallel.impl().compute_type}}) {}
Autocast::~Autocast() = default;

torch::Tensor recomputed(std::function<torch::Tensor(const torch::Tensor&)> block, const torch::Tensor& input,
                         std::vector<torch::Tensor> buffers) {
  return train::recomputed(std::move(block), input, [buffers = std::move(buffers)] { return buffers; });
}

torch::Tensor recomputed(const torch::nn::Module& module, std::function<torch::Tensor(const torch::Tensor&)> forward,
                         const torch::Tensor& input) {
  return train::recomputed(
      std::move(forward), input, [buffers = module.buffers()] { return buffers; }, module.parameters());
}

}  // namespace remuda::parallel
