// Writer: a safetensors file, whole or not at all, from values that pass by: no more of the model than one piece needs
// to be in memory.
#pragma once

#include <span>

#include "base/file.h"
#include "base/result.h"
#include "weights/header.h"

namespace remuda::weights {

class Writer {
 public:
  /// Begins with the header, whose tensors get their places (place_tensors()).
  static Result<Writer> create(PendingFile file, Header header);

  /// Says in which order append() takes the values.
  const Header& header() const { return header_; }
  uint64_t file_bytes() const { return header_bytes_ + data_bytes_; }

  /// The next bytes of the tensors, in the header's order, in pieces of any size.
  Result<void> append(std::span<const std::byte> bytes);
  /// Shows the file under its name. To be called once, when all values are there.
  Result<void> commit();

 private:
  Writer(PendingFile file, Header header) : file_(std::move(file)), header_(std::move(header)) {}
  PendingFile file_;
  Header header_;
  uint64_t header_bytes_ = 0, data_bytes_ = 0, written_ = 0;
};

}  // namespace remuda::weights
