#include "wire/frame.h"

#include <cstdint>
#include <fmt/format.h>

#include "base/check.h"

namespace remuda::wire {

std::string frame_of(std::string_view payload) {
  REMUDA_CHECK(!payload.empty() && payload.size() <= kLargestAnswer, "a frame has its limits");
  std::string frame;
  frame.reserve(kHeader + payload.size());
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(payload.size() >> shift & 0xff);
  return frame += payload;
}

Result<std::optional<std::string>> FrameReader::next() {
  if (bytes_.size() < kHeader) return std::nullopt;
  uint32_t length = 0;
  for (size_t i = 0; i < kHeader; ++i) length = length << 8 | static_cast<unsigned char>(bytes_[i]);
  if (length == 0 || length > largest_)
    return usage_error(fmt::format("a message has {} bytes; it must have 1 to {}", length, largest_));
  if (bytes_.size() < kHeader + length) return std::nullopt;
  std::string payload = bytes_.substr(kHeader, length);
  bytes_.erase(0, kHeader + length);
  return payload;
}

}  // namespace remuda::wire
