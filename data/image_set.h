// ImageSet: labelled images from a pair of IDX files, plain or gzip.
//
// Format (http://yann.lecun.com/exdb/mnist): two zero bytes, type (0x08 = unsigned byte), number of dimensions, each
// dimension as a big-endian uint32, then the values. Images have 3 dimensions (count, height, width) or 4 (count,
// channels, height, width); labels have 1. The files are foreign input: every count is checked against the size.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/file.h"
#include "base/result.h"
#include "data/images.h"

namespace remuda::data {

class ImageSet final : public Images {
 public:
  /// Maps both files; gzip is unpacked, chunk by chunk, into a scratch file without a name. Every error names the file.
  static Result<ImageSet> open(const std::string& images, const std::string& labels);

  size_t size() const override { return labels_.size(); }
  const ImageShape& shape() const override { return shape_; }
  /// Largest label + 1.
  int classes() const override { return classes_; }
  /// shape().bytes() values of 0..255, channel by channel, row by row.
  std::span<const uint8_t> pixels(size_t index) const {
    return pixels_.subspan(index * shape_.bytes(), shape_.bytes());
  }
  int label(size_t index) const override { return labels_[index]; }
  Result<void> read(size_t index, std::span<uint8_t> values) const override;

 private:
  MappedFile image_file_, label_file_;
  std::span<const uint8_t> pixels_, labels_;
  ImageShape shape_;
  int classes_ = 0;
};

}  // namespace remuda::data
