// Gzip files as mapped memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/file.h"
#include "base/result.h"

namespace remuda::data {

/// Do the file's first bytes say gzip?
bool is_gzip(std::span<const std::byte> bytes);

/// How long the unpacked content has to be, told from its first bytes (`kHeadBytes`, or fewer where it ends before).
/// Anything longer is refused, so that a small file cannot fill the disk.
using ExpectedSize = std::function<Result<uint64_t>(std::span<const std::byte> head)>;
inline constexpr size_t kHeadBytes = 32;

/// Unpacks the gzip file `name`, whose packed bytes are given, chunk by chunk into a scratch file without a name, and
/// maps that.
Result<MappedFile> unpack_gzip(std::span<const std::byte> packed, const std::string& name,
                               const ExpectedSize& expected_size);

}  // namespace remuda::data
