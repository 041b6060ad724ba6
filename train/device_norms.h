// DeviceNorms: the norms of the gradients that a rank owns, by bucket, taken where the gradients are.
//
// In double precision, so that the square of each is in range for any float.
#pragma once

#include "train/flat_parameters.h"

namespace remuda::train {

class DeviceNorms {
 public:
  /// `flat` outlives it.
  DeviceNorms(const DeviceOps& ops, const FlatParameters& flat);

  /// Takes that of a part of this bucket, in the current stream; zero where the part is empty, as one of a rank that
  /// owned some of it before.
  void take(size_t bucket, comm::Chunk part) const;
  /// The sum of their squares. Waits for the current stream, in which they are to be done.
  double square_sum() const;

 private:
  const FlatParameters& flat_;
  const torch::Tensor norms_;
};

}  // namespace remuda::train
