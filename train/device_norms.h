// DeviceNorms: the norms of the gradients that a rank owns, by bucket, taken where the gradients are, in their own
// type: some devices have no double precision, and others would make a copy of all values in it.
#pragma once

#include <vector>

#include "train/flat_parameters.h"

namespace remuda::train {

class DeviceNorms {
 public:
  /// `flat` outlives it.
  DeviceNorms(const DeviceOps& ops, const FlatParameters& flat);

  /// Takes that of a part of this bucket, in the current stream; zero where the part is empty, as one of a rank that
  /// owned some of it before.
  void take(size_t bucket, comm::Chunk part);
  /// The sum of their squares: not finite exactly where a value is not. Once what take() has given the device is done.
  double square_sum() const;

 private:
  const FlatParameters& flat_;
  std::vector<size_t> first_;        ///< of each bucket: the place of its first slice; and of the end
  std::vector<comm::Chunk> slices_;  ///< as they were taken
  torch::Tensor norms_;              ///< of each slice
};

}  // namespace remuda::train
