// View: how an image is seen in an epoch, mirrored or moved, and what its values become.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/images.h"

namespace remuda::data {

/// How the images of a set become what a model takes.
struct ImageTransform {
  bool flip = false;  ///< half of the images are mirrored, in an epoch
  int crop = 0;       ///< images are moved by up to so many pixels in both directions, over black
  uint64_t seed = 1;  ///< of both
  /// For each channel, (value / 255 - mean) / deviation; where there are none: -1..1.
  std::vector<double> mean, deviation;
};

/// Whether there is a mean and a deviation for each channel, or none at all.
Result<void> check_transform(const ImageTransform& transform, const ImageShape& shape);

struct View {
  bool mirrored = false;
  int down = 0, right = 0;  ///< how far the image has moved
  bool operator==(const View&) const = default;
};

/// Depends on the seed, the epoch and the image only. In epoch 0 an image is as it is.
View view_of(const ImageTransform& transform, uint64_t epoch, uint64_t index);

/// What each of the values 0..255 becomes, for each channel.
class ValueTable {
 public:
  ValueTable(const ImageTransform& transform, int channels);
  /// 256 values
  const float* of(int channel) const { return values_.data() + 256 * channel; }

 private:
  std::vector<float> values_;
};

/// Writes the view of an image as values of the table, channel by channel.
void write_view(std::span<const uint8_t> image, const ImageShape& shape, const View& view, const ValueTable& table,
                std::span<float> into);

}  // namespace remuda::data
