// IDX: the header of an array file (http://yann.lecun.com/exdb/mnist), and the file as an array of unsigned bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace remuda::data {

struct IdxHeader {
  std::vector<uint32_t> dimensions;  ///< 1 to 4 of them
  uint64_t values = 0;               ///< their product
  size_t bytes() const { return 4 + 4 * dimensions.size(); }
};

/// Reads the header of an IDX file of unsigned bytes. `head` is the file's beginning. Errors name the file.
Result<IdxHeader> parse_idx_header(std::span<const std::byte> head, const std::string& name);

/// An IDX file, mapped; its size is what its header says.
struct IdxFile {
  MappedFile file;
  IdxHeader header;
  std::span<const uint8_t> values() const;
};

/// Opens a plain or gzip file.
Result<IdxFile> open_idx(const std::string& path);

}  // namespace remuda::data
