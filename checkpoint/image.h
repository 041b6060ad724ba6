// Image: one rank's file of a checkpoint as it will stand on the disk, in memory of its own. The values are copied into
// it between two steps; it is written beside the training, from where they lie, past the page cache.
//
//   auto image = Image::create(header);
//   for (const weights::TensorInfo& tensor : image->tensors()) copy(tensor.name, image->bytes_of(tensor));
//   auto file = image->write(stored, file_of_rank(0), haste);
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/store.h"
#include "weights/header.h"

namespace remuda::checkpoint {

/// How soon a file is to be there. May change while it is written.
struct Haste {
  std::atomic<bool> given_up = false;  ///< not at all: writing ends soon, with an error
  std::atomic<double> spread_s = 0;    ///< its bytes are spread over so many seconds; 0: as fast as the disk takes them
};

class Image {
 public:
  /// Gives the tensors their places. Fails where there is not so much memory.
  static Result<Image> create(weights::Header header);
  Image(Image&& other) noexcept;
  Image& operator=(Image&&) = delete;
  ~Image();

  /// All of the file.
  std::span<std::byte> bytes() const { return bytes_; }
  /// In the order of their places.
  const std::vector<weights::TensorInfo>& tensors() const { return header_.tensors; }
  /// Where the values of one of tensors() belong: an address that is a multiple of their size.
  std::span<std::byte> bytes_of(const weights::TensorInfo& tensor) const;
  /// Copies all of these values there, past the caches: these stay to whoever computes, and the memory that is written
  /// need not be read before, as it is for a copy through them.
  void fill(const weights::TensorInfo& tensor, std::span<const std::byte> values) const;

  /// Puts the file into the checkpoint's folder, whole or not at all.
  Result<StoredFile> write(const Stored& stored, const std::string& name, const Haste& haste) const;

 private:
  Image(weights::Header header, std::span<std::byte> bytes, size_t header_bytes)
      : header_(std::move(header)), bytes_(bytes), header_bytes_(header_bytes) {}
  weights::Header header_;
  std::span<std::byte> bytes_;  ///< of the whole file; begins with a page
  size_t header_bytes_;
};

}  // namespace remuda::checkpoint
