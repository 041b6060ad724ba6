// Reader: a safetensors file, open. Its header is checked as a whole when it is opened; values are read when asked for.
// They are not mapped: a file that shrinks while it is read is an error then, not the end of the process.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "weights/header.h"

namespace remuda::weights {

class Reader {
 public:
  /// A usage error that names the file: what it is instead of safetensors (a file of torch.save(), a pickle, an HTML
  /// page), or what in it is damaged.
  static Result<Reader> open(const std::string& path);

  /// Fills `to` with what stands in a file from its byte `at` on, or fails.
  using ReadAt = std::function<Result<void>(uint64_t at, std::span<std::byte> to)>;
  /// The same of a file of so many bytes that is read by others.
  static Result<Reader> open(const std::string& path, uint64_t bytes, ReadAt read);

  const Header& header() const { return header_; }
  const std::string& path() const { return path_; }

  /// Copies some of a tensor's bytes: those from its byte `first` on, as many as `to` takes. They may stand at any
  /// address in the file. An error when the file has become shorter since it was opened.
  Result<void> read(const TensorInfo& tensor, uint64_t first, std::span<std::byte> to) const;
  /// Where in the file the bytes of a tensor begin.
  uint64_t place_of(const TensorInfo& tensor) const { return data_at_ + tensor.begin; }

 private:
  std::string path_;
  ReadAt read_;
  Header header_;
  uint64_t data_at_ = 0, data_bytes_ = 0;  ///< of the tensors, in the file
};

}  // namespace remuda::weights
