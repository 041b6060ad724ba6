// OwnedState: what this rank keeps of a run for all: its parts of the parameters and of the optimizer's state.
//
// Parts are known by their place in the model, so that any number of ranks can go on from what any other number has
// kept (checkpoints.h, buddy.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "train/parameter_steps.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// What a rank owns of one parameter, where it is updated.
struct Owned {
  size_t parameter = 0;  ///< its number in FlatParameters
  size_t first = 0;      ///< the first element of it, in row-major order
  torch::Tensor value;   ///< of so many elements; unrounded
  std::vector<torch::Tensor> states;
  torch::Tensor average;  ///< undefined where there is none
};

class OwnedState {
 public:
  virtual ~OwnedState() = default;

  /// Collective, between two steps: to be called before owned() is read, whose parts are up to date until the next
  /// step.
  virtual Result<void> settle() = 0;
  virtual std::vector<Owned> owned() = 0;
  /// So many were made, of which parameters may have missed some; see ParameterSteps::missed(), which is to be set
  /// before resume().
  virtual const ParameterSteps& counts() const = 0;
  virtual void set_missed(std::vector<int64_t> missed) = 0;
  int64_t steps() const { return counts().steps(); }
  /// Collective. Goes on after so many steps, once what is owned() has the values of that time: all ranks get them.
  virtual Result<void> resume(int64_t steps) = 0;
  /// Bytes of what this rank keeps of its own besides the parameters, where it updates.
  virtual size_t state_bytes() const = 0;
  virtual bool is_on_host() const = 0;
};

}  // namespace remuda::train
