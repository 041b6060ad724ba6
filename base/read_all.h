// Reads to the end of a stream that may have no end.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "base/result.h"

namespace remuda {

inline constexpr double kForever_s = std::numeric_limits<double>::infinity();

/// Everything up to the end of `fd`, `limit` bytes at the most; more is a usage error, as is one that cannot be read.
/// Waits for data where it is not a regular file: a pipe into which no process writes for `patience_s` is a usage
/// error. With kForever_s this waits as every filter does: until every process that has the other end has closed it.
/// `name` is for the error.
Result<std::string> read_all(int fd, std::string_view name, size_t limit, double patience_s);

}  // namespace remuda
