// Frames: how messages follow each other in a stream. Each is its length, four bytes with the most significant first,
// and so many bytes of JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace remuda::wire {

/// The longest payload that an agent reads, and the longest that it sends.
inline constexpr size_t kLargestRequest = 64 << 10, kLargestAnswer = 1 << 20;
inline constexpr size_t kHeader = 4;

/// The bytes of a frame.
std::string frame_of(std::string_view payload);

/// Takes a stream apart. Holds no more than one frame and what was added last.
class FrameReader {
 public:
  explicit FrameReader(size_t largest) : largest_(largest) {}

  void add(std::string_view bytes) { bytes_ += bytes; }
  /// The payload of the next frame; nothing where it has not come whole. A usage error for one that is empty or too
  /// large: what follows it cannot be read then.
  Result<std::optional<std::string>> next();
  /// Bytes that were added and not given out.
  size_t size() const { return bytes_.size(); }

 private:
  size_t largest_;
  std::string bytes_;
};

}  // namespace remuda::wire
