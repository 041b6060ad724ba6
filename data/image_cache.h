// ImageCache: images as they were when they were first read, in memory that the processes of a host may share.
//
// What is slow about image files is decoding them; from the second epoch on they come from here. The memory holds the
// first images of the set, as many as fit in it, and takes up only what has been read. Whoever reads an image first
// puts it there; a process that dies while it does so leaves that one image to be decoded by everybody, each time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/memory_file.h"
#include "base/result.h"
#include "data/images.h"

namespace remuda::data {

class ImageCache final : public Images {
 public:
  /// Keeps at most `bytes` of the images in memory of its own.
  static Result<std::unique_ptr<ImageCache>> create(std::unique_ptr<Images> images, uint64_t bytes);
  ~ImageCache() override;

  /// How other processes find this one's memory.
  const MemoryFile::Offer& offer() const { return memory_.offer(); }
  /// Uses the memory of another cache of the same images and bytes in place of its own. Before anything is read; on
  /// failure nothing has changed.
  Result<void> attach(const MemoryFile::Offer& offer);
  /// How many images are kept once they have been read.
  size_t kept() const { return kept_; }

  size_t size() const override { return images_->size(); }
  const ImageShape& shape() const override { return images_->shape(); }
  int classes() const override { return images_->classes(); }
  int label(size_t index) const override { return images_->label(index); }
  Result<void> read(size_t index, std::span<uint8_t> values) const override;

  ImageCache(const ImageCache&) = delete;
  ImageCache& operator=(const ImageCache&) = delete;

 private:
  enum class State : uint8_t { absent, begun, there };  // absent is 0: what new memory holds

  ImageCache(std::unique_ptr<Images> images, size_t kept, MemoryFile memory);
  uint64_t bytes() const;
  std::atomic_ref<State> state(size_t index) const;
  std::span<uint8_t> place(size_t index) const;
  static Result<std::byte*> map(int fd, uint64_t bytes);

  std::unique_ptr<Images> images_;
  size_t kept_;
  MemoryFile memory_;
  std::byte* mapped_ = nullptr;  ///< the token's line, the states, the images
};

}  // namespace remuda::data
