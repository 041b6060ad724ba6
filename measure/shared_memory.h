// SharedMemory: memory of several processes, without a name; gone with the last of them.
#pragma once

#include <cstddef>
#include <span>

#include "base/file.h"
#include "base/result.h"

namespace remuda::measure {

class SharedMemory {
 public:
  /// Zeroed; takes room where it is written, near the core that writes first.
  static Result<SharedMemory> create(size_t bytes);
  /// The memory behind a descriptor that another process made and handed on. An error when it is not as long.
  static Result<SharedMemory> open(Fd fd, size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  int fd() const { return fd_.get(); }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  SharedMemory(Fd fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  Fd fd_;
  std::span<std::byte> bytes_;
};

}  // namespace remuda::measure
