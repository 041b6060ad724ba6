// What a trainer does before the first step.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include "train/agreement.h"
#include "train/device/collectives.h"
#include "train/device/collectives_speed.h"
#include "train/device/pinned_memory.h"
#include "train/labels.h"
#include "train/model/make_model.h"
#include "train/role_measures.h"
#include "train/trainer.h"
#include "train/weights.h"

namespace remuda::train {
namespace {

balance::BalanceOptions balance_options(const job::TrainJob& job, int unit) {
  balance::BalanceOptions options;
  options.policy = job.balance.policy;
  options.global_batch = job.train.global_batch;
  options.unit = unit;
  options.weights = job.balance.shares;
  options.names = job::device_names(job);
  for (int rank = 0; rank < std::ssize(job.devices); ++rank)
    options.bounds.push_back({0, job::computes(job, rank) ? job.train.global_batch : 0});
  return options;
}

/// A device without a cache of its own needs no emptying.
Result<void> check_cache(const job::MemorySpec& memory, const DeviceOps& ops) {
  if (memory.empty_cache == job::Switch::off || ops.is_synchronous() || ops.has_cache()) return {};
  return usage_error(
      fmt::format("memory.empty_cache = \"on\" needs libtorch 2.9 or later on a {} device; this is libtorch {}",
                  torch::DeviceTypeName(ops.device().type(), true), TORCH_VERSION));
}

/// Whether not even one sample, or one micro-batch, fits in the memory of a device that was measured so.
bool has_no_room(const std::vector<balance::BatchTime>& times) {
  return !times.empty() && alone_samples_per_s(times) == 0;
}

/// Collective. What makes the batch norms of all ranks one, where the job asks for that and there are others.
Result<std::unique_ptr<NormExchange>> synchronize_norms(const job::TrainJob& job, comm::Communicator& communicator,
                                                        Model& model) {
  if (job.train.batch_norm == job::BatchNorm::local || communicator.size() == 1) return nullptr;
  REMUDA_ASSIGN(auto norms, NormExchange::create(communicator));
  if (!model.synchronize_norms(*norms)) return usage_error(job::synchronized_norm_refusal());
  return norms;
}

/// On its device; or, where that is to hold parts of it only, on the host until it is divided.
Result<void> place_model(const job::TrainJob& job, torch::Device device, Model& model) {
  if (job.memory.parameters == job::Held::whole) {
    model.to(device);
  } else if (model.blocks().empty()) {
    return usage_error(
        fmt::format("memory.parameters = \"sharded\" is for models with blocks, but {} has none: it must "
                    "be a torch.nn.Sequential, or built in; leave the key out",
                    job.model.path.empty() ? "model " + job.model.name : job.model.path));
  }
  return {};
}

bool has_batch_norm(Model& model) {
  return std::ranges::any_of(model.named_buffers(),
                             [](const NamedTensor& buffer) { return buffer.name.ends_with("running_mean"); });
}

/// Of a rank that can hold the model, but not train it.
std::string no_room(const job::TrainJob& job, int rank, bool is_cpu) {
  const bool on_host = job.memory.optimizer == job::UpdatesOn::host;
  return fmt::format(
      "{}{} has no room for parameters, gradients and its part of the optimizer's state; {}"
      "balance.state_shares gives a device less of that",
      job.devices[size_t(rank)].use, on_host && !is_cpu ? " or its host" : "",
      on_host || is_cpu ? "" : "memory.optimizer = \"host\" keeps that in the host's memory, and ");
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::create(const job::TrainJob& job, comm::Communicator& communicator,
                                                 const Events& events, const std::atomic<bool>& leave,
                                                 TrainerOptions options) {
  if (job::ranks_with(job, balance::Role::compute).empty())
    return failed(!options.inherited.goes_on() ? job::nobody_computes() : "no device that takes samples is left");
  REMUDA_ASSIGN(const DeviceOps ops,
                DeviceOps::open(options.device,
                                job.engine.separate_streams == job::Switch::on ? Streams::separate : Streams::shared));
  REMUDA_TRY(check_cache(job.memory, ops));
  REMUDA_ASSIGN(Samples train, Samples::open(job.data, data::Split::train, job.model, job.train.seed));
  REMUDA_TRY(train.share_cache(communicator));
  std::optional<Samples> test;
  if (job.data.test) {
    REMUDA_ASSIGN(test, Samples::open(job.data, data::Split::test, job.model));
    REMUDA_TRY(test->share_cache(communicator));
  }
  configure_arithmetic(job.train);
  torch::manual_seed(job.train.seed);
  REMUDA_ASSIGN(std::unique_ptr<Model> model, make_model(job.model, train.model_input(), job.memory, job.engine));
  if (!job.model.weights.empty()) REMUDA_TRY(load_weights(*model, job.model.weights));
  REMUDA_TRY(place_model(job, options.device, *model));
  REMUDA_ASSIGN(std::unique_ptr<NormExchange> norms, synchronize_norms(job, communicator, *model));
  std::unique_ptr<Trainer> trainer(new Trainer(job, communicator, events, leave, options, ops, std::move(train),
                                               std::move(test), std::move(model), std::move(norms)));
  REMUDA_TRY(trainer->prepare());
  REMUDA_TRY(options.inherited.goes_on() ? trainer->checkpoints_.open_again(options.inherited.kept)
                                         : trainer->checkpoints_.open());
  REMUDA_TRY(trainer->start_balance());
  const uint64_t before = trainer->joins() ? uint64_t(options.inherited.generation) << 16 : 0;
  torch::manual_seed(job.train.seed + 1 + before + uint64_t(communicator.rank()));
  REMUDA_TRY(trainer->resume());
  return trainer;
}

Trainer::Trainer(const job::TrainJob& job, comm::Communicator& communicator, const Events& events,
                 const std::atomic<bool>& leave, TrainerOptions options, const DeviceOps& ops, Samples train,
                 std::optional<Samples> test, std::unique_ptr<Model> model, std::unique_ptr<NormExchange> norms)
    : job_(job),
      communicator_(communicator),
      events_(events),
      leave_(leave),
      options_(options),
      ops_(ops),
      profile_(job, communicator, events, kUntimedSteps, ops.device()),
      batch_memory_(pinned_memory(ops_)),
      train_(std::move(train)),
      test_(std::move(test)),
      norms_(std::move(norms)),
      model_(std::move(model)),
      compute_type_(compute_type(job.train.precision, ops.device(), model_->parameters().at(0).scalar_type())),
      pace_(job.devices[communicator.rank()].slowdown, steady_clock()),
      local_(*model_, ops_, pace_,
             {job.model.loss, job.data.padding, compute_type_, size_t(job.memory.accumulate), job.train.micro_batch,
              norms_.get(), job.engine.fewer_waits == job::Switch::on}),
      start_(*model_, ops_.device()),
      statistics_(model_->norm_statistics()),
      batches_(
          train_,
          {job.train.seed, job.train.global_batch, communicator.rank(), uint64_t(job.train.epochs) * train_.size(),
           job::ranks_with(job, balance::Role::preprocess).empty() ? loader_threads(job.data, ops_.is_synchronous())
                                                                   : 0,
           job::share_unit(job), batch_memory_}),
      checkpoints_(job, communicator, events, *model_, host_copies(), train_.size(), options.folder_is_claimed,
                   options.write_pause_s),
      balancer_(balance_options(job, job::share_unit(job))),
      log_(job, communicator.rank(), options.step_times_fd),
      memory_(communicator.size(), job.memory.accumulate, job.train.micro_batch) {
  mine_ = options_.inherited.totals;
  report_.oom_steps = options_.inherited.oom_steps;
  report_.before_loss = options_.inherited.timed;
  report_.timed_samples = report_.before_loss.samples;
  report_.timed_s = report_.before_loss.seconds;
  model_->set_training(true);
  if (job.train.micro_batch > 0) evaluated_at_once_ = job.train.micro_batch;
  report_.policy = job.balance.policy;
  report_.micro_batch = job.train.micro_batch;
  if (has_batch_norm(*model_)) report_.batch_norm = norms_ ? "synchronized" : "local";
  if (norms_) norms_->set_hooks(waits_in_step());
  report_.seed = job.train.seed;
  report_.transport = communicator.transport();
}

/// Of waits for others in the middle of forward and backward passes.
WaitHooks Trainer::waits_in_step() {
  return {.before_wait = [this] { pace_.stretch(); },
          .waited =
              [this](double seconds) {
                pace_.leave_out(seconds);
                wait_in_step_s_ += seconds;
              }};
}

Result<void> Trainer::prepare() {
  REMUDA_TRY(profile_.open());
  REMUDA_TRY(log_.open());
  REMUDA_TRY(prepare_feed());
  for (const Samples* samples : {&train_, test_ ? &*test_ : nullptr}) {  // data.transform may give them other shapes
    if (!samples) continue;
    REMUDA_ASSIGN(const Batch one, samples->gather(std::vector<uint64_t>{0}));
    REMUDA_TRY(local_.check_model(job_.model.path.empty() ? job_.model.name : job_.model.path, one,
                                  train_.model_input().classes));
  }
  REMUDA_TRY(find_least_part());
  REMUDA_ASSIGN(const auto precisions, agree_on_precision(communicator_, job_.train.precision, compute_type_));
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    DeviceReport& device = report_.devices.emplace_back();
    device.device = job_.devices[rank];
    device.precision = precisions[rank];
  }
  report_.sent_as = model_->parameters().at(0).scalar_type();
  report_.gradients_sent_as = report_.sent_as;
  if (communicator_.size() > 1 && !is_sharded()) {
    report_.sent_as = common_short_type(precisions).value_or(report_.sent_as);
    REMUDA_ASSIGN(report_.gradients_sent_as, gradient_type(job_.train.gradients, report_.gradients_sent_as));
  }
  if (job_.train.compression != job::Compression::none && job_.train.compression != job::Compression::automatic)
    REMUDA_TRY(CompressedOptimizer::check_type(model_->parameters().at(0).scalar_type()));
  REMUDA_TRY(prepare_collectives());
  return prepare_parallel();
}

/// Collective. Of the devices' maker, where they may be used and work.
Result<void> Trainer::prepare_collectives() {
  comm::OpenedCollectives opened{nullptr, "train.device_collectives is \"off\""};
  if (job_.train.compression != job::Compression::none)
    report_.compression = CompressionReport{.kind = job_.train.compression, .why_not = why_no_compression()};
  if (report_.compression && report_.compression->why_not.empty()) {
    opened.why_not = "train.compression is set: what it packs is in memory of the host";
  } else if (job_.elastic.ranks_lost > 0) {
    opened.why_not = "elastic.ranks_lost is set: memory of the host shows at once that a rank is lost";
  } else if (!job_.elastic.join.empty()) {
    opened.why_not = "elastic.join is set: the device that joins may be of another maker";
  } else if (is_sharded()) {
    opened.why_not = "memory.parameters is \"sharded\": blocks are fetched through memory of the host";
  } else if (job_.train.deterministic == job::Switch::on) {
    opened.why_not = "train.deterministic is set: no library of a maker promises the order of its sums";
  } else if (job_.train.device_collectives == job::Switch::on) {
    const CollectivesTrial trial{.largest_bytes = size_t(bucket_bytes()),
                                 .equal_parts = job_.engine.equal_parts == job::Switch::on};
    REMUDA_ASSIGN(opened, open_collectives(communicator_, ops_, trial));
  }
  report_.collectives = {.why_not = opened.why_not};
  if (opened.collectives) {
    report_.collectives.library = opened.collectives->name();
    report_.collectives.same_bits = opened.collectives->promises().same_bits;
  }
  collectives_ = std::move(opened.collectives);
  if (collectives_ && job_.engine.bucket_by_latency == job::Switch::on) {
    REMUDA_ASSIGN(const CollectivesSpeed speed,
                  measure_collectives(communicator_, *collectives_, ops_, CollectivesTrial().timeout_s));
    report_.collectives.bucket_bytes = bucket_bytes_by(speed, bucket_bytes());
  }
  if (collectives_) report_.gradients_sent_as = model_->parameters().at(0).scalar_type();  // sums would be as short
  if (!is_first()) return {};
  Json event = to_json(report_.collectives);
  event["event"] = "device_collectives";
  events_.send(event);
  return {};
}

/// Whether the time of an update is to be known: others share work out by it, or will, or it is to be made longer.
bool Trainer::waits_for_updates() const {
  const bool matters =
      communicator_.size() > 1 || !job_.elastic.join.empty() || job_.devices[size_t(communicator_.rank())].slowdown > 1;
  return matters && job_.engine.fewer_waits == job::Switch::off;
}

/// Collective. For the model as it computes now.
Result<void> Trainer::prepare_parallel() {
  REMUDA_ASSIGN(const Batch few, first_samples(least_));
  const ParallelOptions options{
      .bucket_bytes = std::max(report_.collectives.bucket_bytes, bucket_bytes()),
      .rule = rule_of(job_.train),
      .group_of = groups_of(job_.train, model_->parameters()),
      .names = names_of(*model_, model_->parameters()),
      .clip_norm = job_.train.clip_norm,
      .average = job_.train.average,
      .updates_on = updates_on(job_.memory),
      .state_shares = job_.balance.state_shares.empty() ? state_parts_ : job_.balance.state_shares,
      .roles = job::roles_of(job_),
      .collectives = collectives_.get(),
      .equal_parts = collectives_ && job_.engine.equal_parts == job::Switch::on,
      .ranks_on_device = job::ranks_on_device_of(job_, communicator_.rank()),
      .sent_as = report_.sent_as,
      .gradients_sent_as = report_.gradients_sent_as,
      .blocks = is_sharded() ? model_->blocks() : std::vector<std::vector<torch::Tensor>>(),
      .waits_for_updates = waits_for_updates(),
      .pass_waits = waits_in_step(),
      .norms = norms_.get(),
      .before_send = [this] { pace_.stretch(); },
      .before_wait =
          [this] {
            last_.update_s = pace_.stop();
            add_compute(last_.update_s);
          }};
  parallel_.reset();  // a device may have no room for two
  for (const auto& parameter : model_->parameters()) parameter.mutable_grad() = torch::Tensor();
  start_.keep();
  try {
    REMUDA_ASSIGN(parallel_, DataParallel::create(
                                 communicator_, ops_, model_->parameters(), [&] { local_.run_alone(few); }, options));
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    return failed(no_room(job_, communicator_.rank(), ops_.is_synchronous()));
  }
  start_.restore();  // so few samples are no statistic
  if (!is_sharded()) return {};
  model_->to(ops_.device());  // what is not trained
  model_->watch_blocks(*parallel_->blocks());
  start_.keep();
  return {};
}

Result<AloneCosts> Trainer::alone_costs(const KeptBalance* kept) {
  local_.set_pieces(size_t(job_.memory.accumulate));  // whatever the last step had
  return measure_devices(
      {job_, communicator_, events_, leave_, train_, *model_, local_, pace_, *parallel_, share_unit(), kept});
}

/// Which device this rank has, and what decides how fast it computes this job; the same in each run.
uint64_t Trainer::device_hash() const {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const job::DeviceSpec& device = job_.devices[communicator_.rank()];
  const std::string text =
      fmt::format("{} {} {} x{} {} {} threads {} {} {} {} {} {} {} {} {} {} {} {} {} {} role {} {}", host, device.use,
                  c10::DeviceTypeName(ops_.device().type(), true), device.slowdown, precision_name(compute_type_),
                  at::get_num_threads(), TORCH_VERSION, job_.memory.accumulate, int(job_.memory.recompute),
                  job_.memory.recompute_blocks, job_.train.micro_batch, int(job_.train.tf32), int(job_.train.autotune),
                  int(job_.train.deterministic), int(job_.train.batch_norm), job_.data.size, job_.data.context,
                  int(job_.memory.optimizer), int(job_.memory.parameters), int(job_.memory.activations),
                  int(device.role), "with whole updates");
  const job::EngineSpec& engine = job_.engine;
  const std::string ways = fmt::format("{} {} {} {}", int(engine.separate_streams), int(engine.fused_attention),
                                       int(engine.script_fusers), int(engine.fewer_waits));
  return XXH3_64bits(text.data(), text.size()) ^ XXH3_64bits(ways.data(), ways.size());
}

Result<void> Trainer::start_balance() {
  REMUDA_ASSIGN(const std::optional<KeptBalance> kept, kept_balance());
  if (job_.memory.activations == job::Activations::host || (kept && kept->spills)) begin_to_spill();
  if (kept && kept->recomputes) REMUDA_TRY(begin_to_recompute());
  REMUDA_ASSIGN(balance::BalanceDecision first, split_by_speed(kept ? &*kept : nullptr));
  while (!memory_.fits(shares_)) {
    REMUDA_ASSIGN(const bool again, begin_to_save_memory());
    if (!again) break;
    REMUDA_ASSIGN(first, split_by_speed());
  }
  REMUDA_TRY(keep_compression());
  log_.begin(alone_);
  record(first);
  report_plan();
  REMUDA_TRY(forecast_roles());
  begin_search();
  wait_for_steps_of(first.predicted_step_s);
  return {};
}

/// Collective. Measures time and memory of each device, unless it is `kept`, and splits the batch by them.
Result<balance::BalanceDecision> Trainer::split_by_speed(const KeptBalance* kept) {
  AloneCosts costs;
  AloneTimes& times = costs.times;
  MemoryNeed need;
  if (kept && kept->knows_all()) {
    for (const KeptDevice& device : kept->ranks) times.by_rank.push_back(device.alone);
  } else {
    REMUDA_ASSIGN(costs, alone_costs(kept));
    need = fit_memory(costs.memory);
  }
  if (kept && kept->alone_of(communicator_.rank())) need = kept->ranks[communicator_.rank()].need;
  const std::vector<int> computing = job::ranks_with(job_, balance::Role::compute);
  if (std::ranges::any_of(computing, [&](int rank) { return has_no_room(times.by_rank[rank]); })) {
    REMUDA_ASSIGN(const bool again, begin_to_save_memory());
    if (again) return split_by_speed();
  }
  alone_ = times.by_rank;
  REMUDA_TRY(plan_memory(need));
  REMUDA_TRY(gather_measures(costs, kept));
  report_.stopped = times.leaving;
  balance::BalanceOptions options = balance_options(job_, share_unit());
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const auto& alone = times.by_rank[rank];
    if (!alone.empty()) report_.devices[rank].alone_measurements = {alone_samples_per_s(alone)};
    if (has_no_room(alone)) options.bounds[rank].high = 0;
  }
  balancer_ = balance::Balancer(std::move(options));
  for (int rank = 0; rank < communicator_.size(); ++rank)
    for (const auto& time : kept && kept->alone_of(rank) ? kept->ranks[rank].known
                                                         : part_times(times.by_rank[rank], measured_[rank].update_s))
      balancer_.calibrate(rank, time.batch, time.seconds);
  REMUDA_ASSIGN(balance::BalanceDecision first, balancer_.start());
  shares_ = balancer_.shares();
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(shares_)), 0, label::kShares));
  REMUDA_ASSIGN(const bool is_divided, divide_by_speed());
  if (is_divided) {
    REMUDA_TRY(plan_memory(need));  // beside what each owns now
    first.state_shares = owned_parts();
  }
  return first;
}

}  // namespace remuda::train
