// What a trainer plans of the devices' memory before the first step, and what it does where a part would not fit.
#include <algorithm>
#include <cmath>

#include "train/agreement.h"
#include "train/labels.h"
#include "train/model/make_model.h"
#include "train/trainer.h"

namespace remuda::train {

/// Collective. Where memory.recompute is "auto": from now on blocks are recomputed. False where they are already, or
/// there are none, or the job says otherwise.
Result<bool> Trainer::begin_to_recompute() {
  if (job_.memory.recompute != job::Recompute::automatic || report_.recomputes ||
      !model_->recompute_blocks(blocks_to_recompute(job_.memory)))
    return false;
  report_.recomputes = true;
  REMUDA_TRY(prepare_parallel());  // what blocks share becomes ready more often
  return true;
}

/// From now on activations lie in memory of the host, where this rank's device has memory of its own.
void Trainer::begin_to_spill() {
  local_.spill_activations();
  spill_s_per_byte_ = local_.spill()->seconds_per_byte();
}

/// Collective. Where the job leaves it to the run: activations go to the host, or, where they are there already or no
/// device has memory of its own, blocks are recomputed. False where nothing of that is left to do.
Result<bool> Trainer::begin_to_save_memory() {
  if (job_.memory.activations == job::Activations::automatic && !local_.spill()) {
    REMUDA_ASSIGN(const std::vector<uint64_t> on_host,
                  gather_all(communicator_, uint64_t{ops_.is_synchronous()}, label::kNeeds));
    if (std::ranges::find(on_host, 0) != on_host.end()) {
      begin_to_spill();
      report_.spills = true;
      return true;
    }
  }
  return begin_to_recompute();
}

/// Collective. From what a step takes of this rank's device.
Result<void> Trainer::plan_memory(MemoryNeed mine) {
  const auto now = memory_in_use(ops_.device());
  if (mine.known > 0 && now) {
    mine.held = now->before + uncounted_bytes();
    const double free = ops_.free_bytes() / job::ranks_on_device_of(job_, communicator_.rank());
    if (free > 0) mine.room = mine.held + free + (now->reserved_peak - now->before);
    if (options_.room_bytes > 0) mine.room = options_.room_bytes;
  }
  std::vector<MemoryNeed> all(communicator_.size());
  REMUDA_TRY(communicator_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                                      label::kNeeds));
  memory_.take(std::move(all));
  return {};
}

/// On a CPU, values and gradients lie in memory of the communicator, which no allocator of libtorch counts.
double Trainer::uncounted_bytes() const { return ops_.is_synchronous() ? double(parallel_->shared_bytes()) : 0; }

/// Rank 0: what a step will take of each device, before there is one.
void Trainer::report_plan() {
  Json peaks = Json::array(), rooms = Json::array(), pieces = Json::array();
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    peaks.push_back(memory_.peak(rank, shares_[rank]).value_or(NAN));
    rooms.push_back(memory_.needs()[rank].room);
    pieces.push_back(this->pieces(rank, shares_));
  }
  if (is_first())
    events_.send({{"event", "memory"},
                  {"peak_bytes", peaks},
                  {"room_bytes", rooms},
                  {"pieces", pieces},
                  {"recomputes", report_.recomputes},
                  {"spills", report_.spills}});
}

/// Of all forward passes of this rank's model, trials too.
void Trainer::count_spill() {
  if (!local_.spill() || ops_.is_synchronous()) return;
  const SpillCost cost = local_.spill()->cost();
  if (cost.passes == 0) return;
  SpillReport& spill = mine_.spill;
  spill.bytes_per_pass = cost.bytes / cost.passes;
  spill.predicted_s_per_pass = spill.bytes_per_pass * spill_s_per_byte_;
  spill.wait_s_per_pass = cost.wait_s ? *cost.wait_s / cost.passes : NAN;
}

/// Before a step is repeated in which ranks ran out of memory: each of them computes its part in twice as many pieces
/// from now on, or gets a smaller one where pieces are single samples or micro-batches. The same on all ranks.
Result<void> Trainer::make_room(const StepTotals& totals, const std::vector<int>& parts) {
  ++report_.oom_steps;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    if (!(totals.status[rank] & kOutOfMemory)) continue;
    if (rank == communicator_.rank()) ++mine_.oom_steps;
    if (!memory_.cut(rank, parts[rank])) REMUDA_TRY(shrink_share(rank));
  }
  return {};
}

/// The rank gets less, the others more.
Result<void> Trainer::shrink_share(int rank) {
  const int share = shares_[rank], unit = share_unit();
  const std::string who = fmt::format("rank {} ({}) ran out of memory", rank, job_.devices[rank].use);
  if (share <= least_)
    return failed(
        fmt::format("{} with {}; use a smaller model", who,
                    least_ == 1 ? "a single sample" : fmt::format("{} samples, the fewest that it takes", least_)));
  const auto decision = balancer_.limit(report_.steps, rank, share * 3 / 4);
  if (!decision && job_.train.micro_batch > 0)
    return failed(fmt::format("{} in micro-batches of {} samples; use a smaller train.micro_batch", who, unit));
  if (!decision) return tl::unexpected(decision.error());
  record(*decision);
  if (participants_) participants_->limit(size_t(rank), balancer_.bounds_in_samples()[rank].high, balancer_.allowed());
  shares_ = balancer_.shares();
  return communicator_.broadcast(std::as_writable_bytes(std::span(shares_)), 0, label::kShares);
}

}  // namespace remuda::train
