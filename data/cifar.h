// CifarSet: the images of CIFAR-10 or CIFAR-100, in their binary files.
//
// Format (https://www.cs.toronto.edu/~kriz/cifar.html): records without a header, each a label (CIFAR-100: a coarse and
// a fine one, of which the fine one is used) in a byte, then 3 x 32 x 32 values, channel by channel, row by row. The
// files are foreign input: which of the two they hold is known by their size and their labels, and every label is
// checked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "data/images.h"

namespace remuda::data {

/// The files of a part in a folder as the archives unpack: data_batch_*.bin and test_batch.bin of CIFAR-10, train.bin
/// and test.bin of CIFAR-100. A file is itself. Empty where there are none.
std::vector<std::string> cifar_files(const std::string& path, Split split);

class CifarSet final : public Images {
 public:
  /// Maps the files. Every error names one of them, or `path`.
  static Result<CifarSet> open(const std::string& path, Split split);

  size_t size() const override { return first_.back(); }
  const ImageShape& shape() const override { return shape_; }
  /// 10 or 100, whatever labels there are.
  int classes() const override { return classes_; }
  int label(size_t index) const override { return std::to_integer<int>(record(index)[label_bytes() - 1]); }
  Result<void> read(size_t index, std::span<uint8_t> values) const override;

 private:
  size_t label_bytes() const { return classes_ == 10 ? 1 : 2; }
  std::span<const std::byte> record(size_t index) const;

  static constexpr ImageShape shape_{3, 32, 32};
  int classes_ = 10;
  std::vector<MappedFile> files_;
  std::vector<size_t> first_{0};  ///< of each file, the number of images before it; last, the number of all
};

}  // namespace remuda::data
