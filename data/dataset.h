// Dataset: samples as a model takes them, an input and its target, each of the same size in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "data/images.h"
#include "data/token_set.h"
#include "data/view.h"

namespace remuda::data {

/// May be read by many threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual size_t size() const = 0;
  virtual size_t input_bytes() const = 0;
  virtual size_t target_bytes() const = 0;
  /// Writes sample `index` < size() into input_bytes() and target_bytes() of memory that is aligned for its values.
  /// What is random about a sample depends on it and on the epoch only.
  virtual Result<void> write(uint64_t index, uint64_t epoch, std::span<std::byte> input,
                             std::span<std::byte> target) const = 0;
};

/// Images as float32, channel by channel, as each is seen in the epoch (view.h); the label as int64.
class ImageSamples final : public Dataset {
 public:
  /// The transform fits the images: check_transform().
  explicit ImageSamples(std::unique_ptr<Images> images, ImageTransform transform = {})
      : images_(std::move(images)), transform_(std::move(transform)), values_(transform_, images_->shape().channels) {}
  const Images& images() const { return *images_; }
  size_t size() const override { return images_->size(); }
  size_t input_bytes() const override { return sizeof(float) * images_->shape().bytes(); }
  size_t target_bytes() const override { return sizeof(int64_t); }
  Result<void> write(uint64_t index, uint64_t epoch, std::span<std::byte> input,
                     std::span<std::byte> target) const override;

 private:
  std::unique_ptr<Images> images_;
  ImageTransform transform_;
  ValueTable values_;
};

/// A window of tokens as int64; the target of each is the next one.
class TokenSamples final : public Dataset {
 public:
  TokenSamples(TokenSet tokens, int context) : tokens_(std::move(tokens)), context_(size_t(context)) {}
  size_t size() const override { return tokens_.size(); }
  size_t input_bytes() const override { return sizeof(int64_t) * context_; }
  size_t target_bytes() const override { return sizeof(int64_t) * context_; }
  Result<void> write(uint64_t index, uint64_t epoch, std::span<std::byte> input,
                     std::span<std::byte> target) const override;

 private:
  TokenSet tokens_;
  size_t context_;
};

}  // namespace remuda::data
