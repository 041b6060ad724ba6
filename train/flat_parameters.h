// FlatParameters: a model's parameters and gradients as two flat tensors; the parameters are views of them.
//
// One flat gradient lets buckets be plain ranges of memory that the transport can reach; one flat parameter lets the
// optimizer, the hash and the broadcast work on ranges of it. Elementwise optimizers give the same result either way.
// Where all devices compute in 16 bits anyway, values are sent in that type: half of the bytes. So are gradients where
// the job says so. The parameters of blocks that are sharded (FlatLayout::blocks()) are listed here, but lie elsewhere:
// see ShardedParts.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/device/mirror.h"
#include "train/flat_layout.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// In which types the ranks send each other what they have: that of the parameters, or a shorter one.
struct SentAs {
  torch::ScalarType values, gradients;
};

class FlatParameters {
 public:
  /// Collective. Lays `parameters` (one floating-point type, each once, all on the device of `ops`) out as `layout`
  /// says, in their order. The communicator and `ops` outlive it.
  static Result<FlatParameters> create(comm::Communicator& communicator, const DeviceOps& ops,
                                       std::vector<torch::Tensor> parameters, FlatLayout layout, SentAs sent_as);

  const FlatLayout& layout() const { return layout_; }
  /// Between two steps, on all ranks: who owns what. The rest of the layout is the same.
  void set_owners(FlatLayout layout) { layout_ = std::move(layout); }
  /// All of them, those of sharded blocks last.
  const std::vector<torch::Tensor>& parameters() const { return parameters_; }
  Mirror& values() { return values_; }
  const Mirror& values() const { return values_; }
  /// Whether values are rounded to a shorter type when they are sent.
  bool rounds() const { return rounded_.has_value(); }
  /// What is sent of the values: they themselves, or their image in the shorter type.
  Mirror& sent() { return rounded_ ? *rounded_ : values_; }
  Mirror& gradients() { return gradients_; }
  const Mirror& gradients() const { return gradients_; }
  /// What is sent of the gradients; see round_gradients().
  const Mirror& sent_gradients() const { return rounded_gradients_ ? *rounded_gradients_ : gradients_; }
  /// Collective, between two steps. From now on gradients are rounded to this shorter type when they are sent.
  Result<void> send_gradients_as(comm::Communicator& communicator, const DeviceOps& ops, torch::ScalarType shorter);
  /// Brings this range of what is sent up to date, if that is rounded. To the nearest; ties to even.
  void round_gradients(comm::Chunk range) const;

  /// Of values, gradients and what is sent.
  size_t bytes() const;

  /// Sets the gradient to zero and makes sure that every parameter still accumulates into it; or only the latter.
  void zero_gradient();
  void put_gradients_in_place();
  /// Whether parameter i's gradient is its view of the flat one, so that what it accumulates lands there.
  bool gradient_in_place(size_t i) const;

 private:
  FlatParameters(std::vector<torch::Tensor> parameters, FlatLayout layout, Mirror values, Mirror gradients,
                 std::optional<Mirror> rounded, std::optional<Mirror> rounded_gradients);

  std::vector<torch::Tensor> parameters_, views_;  ///< views_: of the flat gradient
  FlatLayout layout_;
  Mirror values_, gradients_;
  std::optional<Mirror> rounded_, rounded_gradients_;
};

}  // namespace remuda::train
