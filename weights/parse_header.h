// Reads the header of a safetensors file that anybody may have written.
#pragma once

#include <string_view>

#include "base/result.h"
#include "weights/header.h"

namespace remuda::weights {

/// The largest header that is read, as by the format's own library.
inline constexpr uint64_t kMostHeaderBytes = 100'000'000;

/// Reads a header for `data_bytes` bytes of tensors. What it gives holds: names differ, each tensor has the bytes that
/// its type and shape need, and together they are all of the data, none twice. The error says what is wrong and names
/// the tensor; it is the end of a sentence that begins with the file.
Result<Header> parse_header(std::string_view text, uint64_t data_bytes);

}  // namespace remuda::weights
