// Trainer: one rank's side of a whole training run.
//
// All ranks run the same code on the same job. Rank 0 also decides the balance, and reports: events while the run goes
// on, a RunReport at the end.
#pragma once

#include <atomic>
#include <limits>
#include <memory>

#include "balance/balancer.h"
#include "balance/participants.h"
#include "balance/role_forecast.h"
#include "base/result.h"
#include "comm/communicator.h"
#include "compress/choose.h"
#include "job/train_job.h"
#include "train/alone_run.h"
#include "train/batches.h"
#include "train/buddy.h"
#include "train/checkpoints.h"
#include "train/data_parallel.h"
#include "train/device/memory_watch.h"
#include "train/events.h"
#include "train/exchange_log.h"
#include "train/local_step.h"
#include "train/memory_plan.h"
#include "train/optimizer.h"
#include "train/run_report.h"
#include "train/running_statistics.h"
#include "train/step_log.h"
#include "train/step_profile.h"
#include "train/step_start.h"
#include "train/weights.h"

namespace remuda::train {

/// What a trainer that has lost a rank, or is to go on with another one, leaves to the next one. Without losses and
/// joins the run begins.
struct Inheritance {
  std::vector<RankLoss> losses;                 ///< the last ones may have no `state` yet: this one finds it
  std::vector<RankJoin> joins;                  ///< and these no `seconds`
  int steps = 0;                                ///< that were made
  std::vector<int64_t> kept;                    ///< see Checkpoints::steps()
  std::vector<std::shared_ptr<Copies>> copies;  ///< see take_up()
  int generation = 0;                           ///< see Members
  static constexpr size_t kJoins = SIZE_MAX;
  std::vector<size_t> left;            ///< those that go on, by their places among the ranks of that trainer, or kJoins
  std::optional<KeptBalance> balance;  ///< where no rank was lost, what was learned of their devices
  CheckpointReport checkpoints;
  OwnTotals totals;
  StepLog::Kept log;
  TimedSteps timed;
  int oom_steps = 0;
  Json profile;                    ///< null until it was published
  double began_s = 0, lost_s = 0;  ///< on monotonic_s(): the run, and when the loss was noticed, or the others stopped

  bool goes_on() const { return !losses.empty() || !joins.empty(); }
};

struct TrainerOptions {
  torch::Device device = torch::kCPU;    ///< what this rank computes on
  int step_times_fd = -1;                ///< rank 0 writes the times of each step there; see step_times_file.h
  double measure_again_after_s = 60;     ///< a run that took longer measures each device alone again at its end
  bool folder_is_claimed = false;        ///< that of the checkpoints, for all ranks of the run
  double room_bytes = 0;                 ///< that tensors may take in all; 0: what is free on the device
  Inheritance inherited;                 ///< the run goes on with other ranks than before
  double write_pause_s = kWritePause_s;  ///< before what could not be written at the end is tried again
  /// For tests, on rank 0: parts of the state that ranks are to own after that step; empty: as they are.
  std::function<std::vector<double>(int step)> moves_state;
  std::function<bool()> has_candidate;  ///< rank 0: whether a rank waits that may join; empty: never
};

class Trainer {
 public:
  /// Collective. Opens the data, builds the model, compares it with the other ranks', measures each device alone.
  /// `leave` may be set at any time, for example by a signal handler: all ranks stop together after the current step,
  /// or in the middle of the measurement or of an evaluation.
  static Result<std::unique_ptr<Trainer>> create(const job::TrainJob& job, comm::Communicator& communicator,
                                                 const Events& events, const std::atomic<bool>& leave,
                                                 TrainerOptions options = {});

  /// Collective. All epochs. The report is complete on rank 0.
  Result<RunReport> run();
  /// Whether run() has returned between two steps, as a rank waits that may join. It may be called again, and goes on.
  bool is_interrupted() const { return is_interrupted_; }
  /// Collective, then: the next trainer's ranks can go on from this step.
  Result<void> keep_state();
  /// Of a run that a rank has joined: what the last one has cost.
  const RankJoin& last_join() const { return report_.joined_ranks.back(); }
  /// After run(): for a trainer of the ranks that go on. To be called once.
  Inheritance bequest();

  /// After run(), on all ranks: rank 0 writes what is left of the run, by write(values_of), and the others give it the
  /// blocks that it needs for that. Of a parameter of the model values_of has the values; each until the next call.
  Result<void> write(const std::function<Result<void>(const ValuesOf& values_of)>& write);

  Model& model() { return *model_; }
  const FlatParameters& parameters() const { return parallel_->flat(); }

 private:
  Trainer(const job::TrainJob& job, comm::Communicator& communicator, const Events& events,
          const std::atomic<bool>& leave, TrainerOptions options, const DeviceOps& ops, Samples train,
          std::optional<Samples> test, std::unique_ptr<Model> model, std::unique_ptr<NormExchange> norms);
  WaitHooks waits_in_step();
  void report_sharded();
  void report_unwritten();
  Result<void> prepare();
  Result<void> prepare_feed();
  Result<void> find_least_part();
  int share_unit() const;
  Result<Batch> first_samples(int count) const;
  Result<void> prepare_collectives();
  /// As the job says.
  double bucket_bytes() const { return job_.train.bucket_mib * (1 << 20); }
  bool waits_for_updates() const;
  Result<void> prepare_parallel();
  Result<AloneCosts> alone_costs(const KeptBalance* kept = nullptr);
  uint64_t device_hash() const;
  Result<std::optional<KeptBalance>> kept_balance();
  Result<void> start_balance();
  Result<balance::BalanceDecision> split_by_speed(const KeptBalance* kept = nullptr);
  Result<void> forecast_roles();
  Result<void> gather_measures(const AloneCosts& costs, const KeptBalance* kept);
  std::vector<double> owned_parts() const;
  bool may_move_state() const;
  std::vector<balance::SplitDevice> devices_to_split() const;
  balance::SplitTask task_to_split() const;
  Result<bool> divide_by_speed();
  void begin_search();
  unsigned moving() const;
  Result<void> move_state();
  void report_left_out();
  Result<void> check_weights();
  Result<bool> begin_to_recompute();
  void begin_to_spill();
  Result<bool> begin_to_save_memory();
  void count_spill();
  Result<void> plan_memory(MemoryNeed mine);
  double uncounted_bytes() const;
  void report_plan();
  Result<void> measure_again(double run_s);

  Result<void> resume();
  Result<void> compress_as_kept();
  void go_on_from(const Progress& at);
  Result<const char*> take_state_back();
  Result<void> make_good_changes(const char* state);
  void report_changes();
  Result<void> keep_profile();
  CheckpointReport checkpoints_in_all() const;
  int generation_of_copies() const;
  Result<void> begin_copies();
  HostCopies host_copies() const { return {ops_, job_.engine.pinned_copies == job::Switch::on}; }
  Result<void> keep_copies();
  Progress progress() const;
  KeptBalance learned() const;
  std::string why_no_compression() const;
  Result<void> keep_compression();
  int choice_step() const;
  Result<void> choose_compression();
  Result<compress::Exchange> measure_exchange();
  Result<double> pass_by_itself_s();
  void exchange_in_another_way();
  void report_exchange();
  Result<void> compress();
  Result<void> compress_when_due();
  std::string what_hosts_send(job::Compression kind) const;
  void report_compression();
  Result<void> run_epoch(int epoch);
  Result<StepTotals> run_step(uint64_t position);
  Result<ReducedStep> attempt_step(uint64_t position);
  int pieces(int rank, const std::vector<int>& parts) const;
  bool any_computes_in(torch::ScalarType type) const;
  void add_compute(double seconds);
  void watch_memory(const std::optional<MemoryUse>& use, int part);
  Result<void> make_room(const StepTotals& totals, const std::vector<int>& parts);
  Result<void> shrink_share(int rank);
  bool may_start_update(const StepTotals& totals) const;
  bool counts_in_order() const;
  Result<void> settle_statistics(bool stands, const std::vector<int>& parts);
  Result<void> make_statistics_the_same();
  Result<void> average_statistics();
  Result<void> apply(const ReducedStep& step);
  void observe(const StepTotals& totals);
  void record(const balance::BalanceDecision& decision);
  void report_step(const StepTotals& totals);
  void wait_for_steps_of(double seconds);
  Result<void> end_epoch(int epoch);
  Result<void> test();
  void empty_cache() const;
  Result<void> collect_totals();

  bool is_sharded() const { return job_.memory.parameters == job::Held::sharded; }
  bool is_first() const { return communicator_.rank() == 0; }
  /// Whether this rank has joined the others at the beginning of this trainer.
  bool joins() const {
    const std::vector<size_t>& left = options_.inherited.left;
    return !left.empty() && left.at(size_t(communicator_.rank())) == Inheritance::kJoins;
  }
  unsigned joining() const;
  int steps_in_all() const { return steps_of(job_.train, train_.size()); }
  /// Whether steps of the epoch are made: when no more are, its end is still to come.
  bool is_owed(int epoch) const { return position_ > uint64_t(epoch - 1) * train_.size(); }
  bool done() const { return report_.stopped || report_.steps >= steps_in_all(); }

  const job::TrainJob& job_;
  comm::Communicator& communicator_;
  const Events& events_;
  const std::atomic<bool>& leave_;
  TrainerOptions options_;
  const DeviceOps ops_;
  StepProfile profile_;  ///< before all that starts threads

  const data::BatchMemory batch_memory_;
  Samples train_;
  std::optional<Samples> test_;
  std::unique_ptr<NormExchange> norms_;  ///< where batch norms normalise the samples of all ranks; else null
  std::unique_ptr<Model> model_;
  const torch::ScalarType compute_type_;
  Pace pace_;
  LocalStep local_;
  StepStart start_;
  RunningStatistics statistics_;
  std::unique_ptr<comm::DeviceCollectives> collectives_;
  std::unique_ptr<DataParallel> parallel_;
  Batches batches_;
  Checkpoints checkpoints_;
  std::unique_ptr<Buddy> buddy_;                        ///< where the job asks for it, and there are others; else null
  std::vector<uint64_t> devices_;                       ///< of each rank, as device_hash() has it
  std::vector<std::vector<balance::BatchTime>> alone_;  ///< of each, before training
  std::vector<balance::MeasuredDevice> measured_;       ///< of each, likewise
  balance::Balancer balancer_;                          ///< decides on rank 0, idle elsewhere
  std::optional<balance::Participants> participants_;   ///< on rank 0, where who takes part is searched for
  std::vector<double> state_parts_;  ///< that ranks own, by the law; empty: by roles and memory, as at first
  int moves_ = 0;                    ///< of the state, by this trainer
  std::vector<double> next_state_;   ///< on rank 0: after the next step; empty: the same
  std::vector<int> shares_;          ///< in force for the next step, the same on every rank
  std::vector<int> last_parts_;  ///< of the last step, whose times the next report contains; empty when it was repeated
  StepLog log_;
  ExchangeLog exchanges_;
  MemoryPlan memory_;
  int least_ = 1;                ///< samples that the model takes at a time while it trains
  double spill_s_per_byte_ = 0;  ///< to the host and back, by a trial

  uint64_t position_ = 0;  ///< of the next step's first sample
  int first_step_ = 0;     ///< so many were made before this trainer
  int steps_made_ = 0;     ///< all of them whole, unlike report_.steps
  double began_s_ = 0;
  bool is_interrupted_ = false;
  OwnTotals mine_;
  StepReport last_;            ///< times and memory of the last step, for the next report
  double wait_in_step_s_ = 0;  ///< of the step under way: in its forward and backward passes
  double epoch_loss_ = 0, epoch_weight_ = 0;
  double samples_since_average_ = 0;
  int evaluated_at_once_ = std::numeric_limits<int>::max();  ///< at most
  int epoch_ = 0;
  LossScale loss_scale_;
  int skipped_in_a_row_ = 0;  ///< while the loss scale cannot be the reason
  double reported_s_ = 0;
  RunReport report_;
};

}  // namespace remuda::train
