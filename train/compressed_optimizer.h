// CompressedOptimizer: an optimizer for slow links: hosts send each other their gradients packed, and no parameters.
//
// The ranks of one host add their gradients up first, through its memory, in float32; the first of them, the host's
// leader, speaks for all. What packing loses is owed, and sent later: what was given to all and what hosts owe is
// always the sum of all gradients. How it is packed is the matter of OneBitAdam and PowerSgd.
//
// Every rank has the whole of the optimizer's state, in memory of its host, in place of a part of it: all make the same
// step from the same bits, in arithmetic that rounds alike everywhere (compress/). A step that does not stand is not
// packed at all, so that nobody owes anything of it. One thread; between two steps, or in update().
#pragma once

#include <memory>
#include <vector>

#include "train/gradient_reducer.h"
#include "train/owned_state.h"
#include "train/update_rule.h"

namespace remuda::train {

class CompressedOptimizer : public OwnedState {
 public:
  /// A usage error where parameters are of another type than float32.
  static Result<void> check_type(torch::ScalarType parameters);

  /// Collective. One step with the gradients that ranks have in FlatParameters::gradients(), on the host, each its own;
  /// their sum times `gradient_factor`. `settings`, one element per group, are rank 0's; `used`: StepTotals::used. What
  /// parameters without a gradient owe stays owed, too.
  Result<void> step(double gradient_factor, std::vector<GroupSettings> settings, const std::vector<char>& used);
  /// Seconds of the last step(): until hosts have exchanged what they packed, and all have made the same step from it.
  double wait_s() const { return wait_s_; }
  /// As Communicator::set_timeout(); Engine::timeout_s is the same by then.
  void set_timeout(double seconds);
  /// What this rank has sent to other hosts.
  uint64_t sent_bytes() const { return between_ ? between_->sent_bytes() : 0; }
  /// Exchanges the parameters for their average, where it has one; once more, back.
  Result<void> swap_average();

  /// After the states comes what all owe. It lies in the memory of the gradients, which settle() overwrites.
  Result<void> settle() override;
  std::vector<Owned> owned() override;
  const ParameterSteps& counts() const override { return counts_; }
  void set_missed(std::vector<int64_t> missed) override { counts_.set_missed(std::move(missed)); }
  Result<void> resume(int64_t steps) override;
  size_t state_bytes() const override;
  bool is_on_host() const override { return true; }

 protected:
  /// Goes on from where `warm` is, after connect() and take_over(), which are collective.
  CompressedOptimizer(Engine& engine, const UpdateRule& rule, const OwnedState& warm);
  Result<void> connect(size_t states, bool has_average);
  Result<void> take_over(OwnedState& warm);

  /// Collective, once this host's gradients are added up on its leader: exchanges them, and steps.
  virtual Result<void> exchange_and_step(double gradient_factor, const std::vector<GroupSettings>& settings) = 0;
  /// Leaders: what this one owes of all values, in memory of zeros; and to owe these in place of that.
  virtual void write_owed(std::span<float> to) = 0;
  virtual void owe(std::span<const float> all) = 0;
  virtual size_t owed_bytes() const = 0;

  /// Collective on the host: what the leader has goes to its other ranks. Any memory.
  Result<void> share(std::span<std::byte> bytes);
  /// Calls make(range, settings, step) for all parameters that make this step, their `step`th.
  void for_runs(const std::vector<GroupSettings>& settings,
                const std::function<void(comm::Chunk range, const GroupSettings&, int64_t step)>& make) const;
  std::span<float> values() const;
  std::span<float> gradients() const;
  std::span<float> state(size_t which) const { return states_[which]; }
  comm::Communicator* leaders() const { return between_.get(); }  ///< null on ranks that are none
  bool is_alone_on_host() const { return !here_; }
  int64_t hosts() const { return hosts_; }

  Engine& engine_;
  const UpdateRule rule_;
  std::span<float> average_;  ///< in memory of the communicator; empty where there is none

 private:
  Result<void> gather(std::span<float> whole);
  Result<void> gather_all();
  Result<void> free_host() const;
  Result<void> add_up_here();
  void send_values();

  ParameterSteps counts_;
  int64_t hosts_ = 1;
  std::unique_ptr<comm::Communicator> here_;     ///< of this host's ranks; null where there is one
  std::unique_ptr<comm::Communicator> between_;  ///< of the leaders
  std::vector<std::span<float>> states_;         ///< of all parameters, in memory of the communicator
  std::span<float> here_slice_;                  ///< in memory of `here_`
  double wait_s_ = 0;
};

/// Ranges of flat memory that are to be what they were once others around them have changed.
class KeptRanges {
 public:
  explicit KeptRanges(std::vector<comm::Chunk> ranges) : ranges_(std::move(ranges)) {}
  /// As it is now; `memory` begins with the element of that number, and may have a part of them only.
  void keep(std::span<float> memory, size_t first = 0);
  void restore() const;

 private:
  struct Kept {
    std::span<float> there;
    std::vector<float> values;
  };
  std::vector<comm::Chunk> ranges_;
  std::vector<Kept> kept_;
};

/// base^count, by the same products on every processor, which std::pow does not promise.
double power(double base, int64_t count);

}  // namespace remuda::train
