// Checkpoints: keeps the state of a run from time to time, and brings a run back to it.
//
// Each rank writes what it owns (OwnedState::owned()) and what is its own, its buffers and generators, to a file;
// on a thread, from a copy that is made between two steps. What ranks know of it rides on the reports of the steps:
// when rank 0 wants one, and who has written it. When all have, rank 0 writes the manifest, on a thread, too. A run
// goes on without a checkpoint that cannot be written, and says so at once and in its report.
//
// Values are known by their place in the model, not by their rank: any number of ranks, on any devices, can go on from
// what any other number has written.
#pragma once

#include <array>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include "base/write_again.h"
#include "checkpoint/image.h"
#include "checkpoint/pieces.h"
#include "checkpoint/store.h"
#include "comm/communicator.h"
#include "job/train_job.h"
#include "train/arrivals.h"
#include "train/checkpoint_report.h"
#include "train/device/host_copies.h"
#include "train/events.h"
#include "train/flat_parameters.h"
#include "train/kept_balance.h"
#include "train/model/model.h"
#include "train/owned_state.h"
#include "train/step_report.h"

namespace remuda::train {

/// Where a run stands, besides its tensors; the same on all ranks, except for what says otherwise.
struct Progress {
  uint64_t position = 0;  ///< of the next step's first sample
  int steps = 0, skipped_steps = 0;
  double epoch_loss = 0, epoch_weight = 0;  ///< of the epoch under way
  std::vector<double> loss_per_epoch;
  double loss_scale = 0;
  int finite_in_a_row = 0;
  int64_t optimizer_steps = 0;
  std::vector<int64_t> missed_steps;                      ///< of these, by each of Model::parameters(); empty: none
  job::Compression compression = job::Compression::none;  ///< of the CompressedOptimizer whose state it is
  double samples_since_average = 0;                       ///< of this rank
  KeptBalance balance;                                    ///< on rank 0
};

class Checkpoints {
 public:
  /// All of them outlive it. Where the job names no folder, all of it does nothing. `is_claimed`: the folder is this
  /// run's already. `pause_s`: before the last one is tried again, where it could not be written.
  Checkpoints(const job::TrainJob& job, comm::Communicator& communicator, const Events& events, Model& model,
              const HostCopies& host, uint64_t samples, bool is_claimed = false, double pause_s = kWritePause_s);
  /// Gives up what is being written, and waits for its thread.
  ~Checkpoints();

  /// Collective. Claims the folder for this run, unless it is. Where the job asks to go on, finds the newest checkpoint
  /// that has all its files; damaged ones are named and passed over. A usage error where all are damaged.
  Result<void> open();
  /// The same of a run whose ranks are others than before, and which has kept these steps, or gone on from them: finds
  /// none.
  Result<void> open_again(std::vector<int64_t> steps);
  /// After open(): what the run to go on from has learned of its devices; null where there is none, or it is not known.
  const KeptBalance* balance() const { return found_ && found_->balance ? &*found_->balance : nullptr; }
  /// Where its state is a CompressedOptimizer's, and resume() needs one: its kind. Else none.
  job::Compression compression() const;
  /// Whether there is one that resume() is to go on from.
  bool has_found() const { return found_.has_value(); }
  /// Collective, after open(). Brings parameters, the optimizer's state, buffers and generators back to those of the
  /// checkpoint that was found, and returns where it stood. Nothing where none was; and where that turns out to be
  /// damaged on any rank, when another one is found, or it is a usage error: until has_found() is false, the state is
  /// nobody's. A model, data or optimizer other than this run's is a usage error.
  Result<std::optional<Progress>> resume(OwnedState& state, const FlatParameters& flat);

  /// Collective, after open_again(): open() and resume() from the newest of those steps that is whole, if one is.
  Result<std::optional<Progress>> resume_again(OwnedState& state, const FlatParameters& flat);
  /// The steps that this run has kept, or gone on from; the same on all ranks. Old ones may be gone.
  const std::vector<int64_t>& steps() const { return steps_; }

  /// The bits of this rank's report of the step after `steps`.
  unsigned status(int steps);
  /// Whether after_step() will make collective calls for these reports, besides OwnedState::settle(): only to end a
  /// checkpoint. While one begins and is written, parameters may be under way.
  bool meets_after(const StepTotals& totals) const;
  /// Collective, after each step: begins or ends a checkpoint where the reports say so.
  Result<void> after_step(const StepTotals& totals, OwnedState& state, const FlatParameters& flat,
                          const std::function<Progress()>& progress);
  /// Collective. At the end of a run: keeps the state unless it has been kept, and waits until that is done, which rank
  /// 0 says from time to time. One that cannot be written is tried again (base/write_again.h).
  Result<void> finish(OwnedState& state, const FlatParameters& flat, const Progress& progress);

  /// Collective, between two steps: waits until the one that is being written is whole, where one is.
  Result<void> complete();
  /// Waits for what the thread makes of the last one that all have written, and reports that: whoever reports next may
  /// not know of it.
  void settle();

  /// On rank 0.
  const CheckpointReport& report() const { return report_; }

 private:
  struct Found {
    checkpoint::Stored at;
    checkpoint::Manifest manifest;
    std::optional<KeptBalance> balance;
  };
  /// What a rank tells the others of one.
  struct Seen {
    enum Verdict : uint64_t { whole, damaged, missing, unfit } verdict = whole;
    std::array<char, 1016> why{};
  };
  struct Looked {
    std::string wrong;  ///< what is, by the first rank that has seen it; empty: nothing
    checkpoint::Manifest manifest;
  };
  struct Loaded {
    Progress progress;
    torch::Tensor host, own;  ///< of the generators; undefined: they stay
  };
  /// Whether the checkpoint of a step is looked at.
  using Wanted = std::function<bool(int64_t step)>;
  struct Pending;
  /// What became of one.
  struct Published {
    checkpoint::Stored stored;
    uint64_t bytes = 0;
    double seconds = 0;  ///< from the first copy until it was whole
    std::string failed;  ///< why it is none; empty: it is one
    std::string left;    ///< what could not be removed after it
    bool beside = true;  ///< the training went on meanwhile
  };

  bool active() const { return !job_.checkpoint.folder.empty(); }
  bool is_first() const { return communicator_.rank() == 0; }
  bool is_due(int steps) const;
  Result<void> begin(OwnedState& state, const FlatParameters& flat, const Progress& progress, bool beside);
  Result<void> conclude();
  void publish(checkpoint::Manifest manifest, const Pending& pending, const std::string& failed);
  double take_published();
  Result<bool> has_kept(int steps);
  Result<void> wait_for_all();
  Result<int> newest_of_own();
  Result<std::vector<checkpoint::Stored>> candidates(const Wanted& wanted);
  Result<std::vector<Seen>> exchange(Seen::Verdict verdict, const std::string& why);
  Result<Looked> look_together(const checkpoint::Stored& at);
  Result<void> take_next();
  Result<void> find(const Wanted& wanted);
  /// Of a rank whose error is the other's: that one says what is wrong.
  static tl::unexpected<Error> because_of(int rank, std::string why);
  Result<Loaded> load(checkpoint::Pieces& pieces, OwnedState& state, const FlatParameters& flat);
  Result<Progress> progress_of(const checkpoint::Manifest& manifest, const std::string& folder) const;
  Result<void> load_owned(Arrivals& arrivals, OwnedState& state, const FlatParameters& flat);
  static Result<std::vector<double>> samples_seen(checkpoint::Pieces& pieces);
  Result<void> load_buffers(Arrivals& arrivals, const FlatParameters& flat, const std::vector<double>& weights);
  torch::Tensor want_generator(checkpoint::Pieces& pieces, const std::string& kind) const;
  void go_on_from(int steps);
  Result<void> check_fits(const checkpoint::Manifest& manifest, const std::string& folder,
                          const FlatParameters& flat) const;
  /// The tensors that are trained, by their place in FlatParameters, under their first names.
  std::vector<std::string> names_of(const FlatParameters& flat) const;
  /// What each rank has of its own: buffers, and parameters that are not trained.
  std::vector<NamedTensor> untrained(const FlatParameters& flat) const;
  std::vector<checkpoint::ModelTensor> model_tensors(const FlatParameters& flat) const;
  Json run_of(const Progress& progress) const;

  const job::TrainJob& job_;
  comm::Communicator& communicator_;
  const Events& events_;
  Model& model_;
  const HostCopies host_;
  const torch::Device device_;
  const uint64_t samples_;

  const bool is_claimed_;
  const double pause_s_;
  bool goes_on_ = false;                    ///< the run has lost a rank, which may still hold the claim
  std::optional<checkpoint::Claim> claim_;  ///< on rank 0, unless it is claimed
  /// On rank 0: those to go on from where newer ones are damaged, in the order of their steps.
  Result<std::vector<checkpoint::Stored>> left_;
  std::vector<std::string> passed_over_;  ///< what is wrong with them
  std::optional<Found> found_;            ///< to go on from; until resume()
  int64_t failed_step_ = -1;              ///< of the one that could not be written last; -1: it was written
  std::vector<int64_t> steps_;
  int last_step_ = 0;  ///< of the last one that was begun, or gone on from
  double last_s_ = 0;  ///< when that was
  CheckpointReport report_;
  std::shared_ptr<checkpoint::Image> image_;  ///< of the last one: the next one's, too
  std::unique_ptr<Pending> pending_;          ///< the one that is being written; its threads are waited for with it
  std::future<Published> published_;          ///< on rank 0: of the last one that all have written
};

}  // namespace remuda::train
