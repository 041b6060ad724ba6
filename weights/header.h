// The header of a safetensors file, which says what the file holds and where.
//
// The format (github.com/huggingface/safetensors): eight bytes, the length of the header as little-endian uint64; the
// header, a JSON object; then the bytes of the tensors, little-endian, row-major, without holes. The header has an
// entry for each tensor,
//   "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
// whose offsets count from the end of the header, and may have "__metadata__", an object of texts. Blanks may follow
// it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weights/dtype.h"

namespace remuda::weights {

struct TensorInfo {
  std::string name;
  DType type = DType::f32;
  std::vector<uint64_t> shape;  ///< empty: a single number
  uint64_t begin = 0, end = 0;  ///< of its bytes, from the end of the header

  uint64_t bytes() const { return end - begin; }
  bool operator==(const TensorInfo&) const = default;
};

struct Header {
  std::vector<TensorInfo> tensors;              ///< in the order of their bytes
  std::map<std::string, std::string> metadata;  ///< "__metadata__"

  bool operator==(const Header&) const = default;
};

/// The header's length stands before it, as uint64.
inline constexpr uint64_t kLengthBytes = sizeof(uint64_t);

/// Gives each tensor its bytes, one after the other. Wider types come first, so that every element stands at a multiple
/// of its size.
void place_tensors(Header& header);

/// The length and the header as they stand in a file: a multiple of eight bytes. The tensors must have their places.
std::string header_bytes(const Header& header);

/// Bytes of the tensor's elements by its type and shape; nothing when there are more than can be counted.
std::optional<uint64_t> bytes_needed(const TensorInfo& tensor);

/// "[2, 3]"; of many dimensions only the first ones.
std::string shape_text(const std::vector<uint64_t>& shape);

}  // namespace remuda::weights
