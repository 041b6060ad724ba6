// Transform: a user's TorchScript program that makes of each image what the model takes.
//
// It has forward(image) or forward(image, random): `image` is a sample as it would be without it, float32 of [channels,
// height, width]; `random` has 64 numbers of 0..1, float32, which depend on the seed, the epoch and the sample only, so
// that a run has the same samples for any number of threads and ranks. self.training says what the sample is for. It
// gives float32 of three dimensions, the same for all images, and draws no random numbers of its own.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "data/dataset.h"
#include "data/images.h"

namespace remuda::train {

class Transform;

/// Images with a transform; may be read by many threads at once, on each of which the program runs by itself.
class TransformedSamples final : public data::Dataset {
 public:
  /// Tries the program on the first image: a file that is none, and a program that does not keep to the above, is
  /// refused with its path. `shape` is that of the images.
  static Result<std::unique_ptr<TransformedSamples>> open(std::unique_ptr<data::Dataset> images,
                                                          const data::ImageShape& shape, const std::string& path,
                                                          data::Split split, uint64_t seed);
  ~TransformedSamples() override;

  /// Of what the program gives.
  const data::ImageShape& shape() const { return given_; }

  size_t size() const override { return images_->size(); }
  size_t input_bytes() const override { return sizeof(float) * given_.bytes(); }
  size_t target_bytes() const override { return images_->target_bytes(); }
  Result<void> write(uint64_t index, uint64_t epoch, std::span<std::byte> input,
                     std::span<std::byte> target) const override;

 private:
  TransformedSamples(std::unique_ptr<data::Dataset> images, std::unique_ptr<Transform> transform);

  std::unique_ptr<data::Dataset> images_;
  std::unique_ptr<Transform> transform_;
  data::ImageShape given_;
};

}  // namespace remuda::train
