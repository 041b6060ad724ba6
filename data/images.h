// Images: labelled images of one shape, whatever files they are in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace remuda::data {

/// What the samples are for.
enum class Split { train, test };

struct ImageShape {
  int channels = 1;
  int height = 0;
  int width = 0;
  size_t bytes() const { return size_t(channels) * height * width; }
  bool operator==(const ImageShape&) const = default;
};

/// A set that is open does not change, and may be read by many threads at once.
class Images {
 public:
  virtual ~Images() = default;
  virtual size_t size() const = 0;
  virtual const ImageShape& shape() const = 0;
  virtual int classes() const = 0;
  /// 0 <= label < classes()
  virtual int label(size_t index) const = 0;
  /// Writes shape().bytes() values of 0..255, channel by channel, row by row. The error names the file.
  virtual Result<void> read(size_t index, std::span<uint8_t> values) const = 0;
};

}  // namespace remuda::data
