#include "weights/header.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"

namespace remuda::weights {

std::optional<uint64_t> bytes_needed(const TensorInfo& tensor) {
  uint64_t bytes = size_of(tensor.type);
  for (const uint64_t size : tensor.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  return bytes;
}

std::string shape_text(const std::vector<uint64_t>& shape) {
  constexpr size_t kMost = 8;
  const auto last = shape.begin() + static_cast<std::ptrdiff_t>(std::min(shape.size(), kMost));
  return fmt::format("[{}{}]", fmt::join(shape.begin(), last, ", "), shape.size() > kMost ? ", ..." : "");
}

void place_tensors(Header& header) {
  std::vector<TensorInfo> placed;
  uint64_t end = 0;
  for (const size_t size : {8, 4, 2, 1})
    for (TensorInfo& tensor : header.tensors) {
      if (size_of(tensor.type) != size) continue;
      tensor.begin = end;
      tensor.end = end += bytes_needed(tensor).value();
      placed.push_back(std::move(tensor));
    }
  header.tensors = std::move(placed);
}

std::string header_bytes(const Header& header) {
  static_assert(std::endian::native == std::endian::little, "tensors are written as they are");
  std::string text = "{";
  if (!header.metadata.empty()) text += "\"__metadata__\":" + to_line(Json(header.metadata));
  for (const TensorInfo& tensor : header.tensors) {
    const Json entry{
        {"dtype", name_of(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
    text += (text.size() > 1 ? "," : "") + to_line(Json(tensor.name)) + ":" + to_line(entry);
  }
  text += "}";
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + text;
}

}  // namespace remuda::weights
