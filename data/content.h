// Content: what is in a data file, or a folder of them, in one short line, so that ranks on different machines can
// compare theirs.
#pragma once

#include <string>

#include "base/result.h"

namespace remuda::data {

/// "47040016 bytes, hash 81f0d3c2a5b6e790". Files that differ have different lines, except that of a file larger than
/// 64 MiB only 256 parts of 64 KiB are read, evenly spread, the first and the last included. Of a folder,
/// "1024 files, hash 81f0d3c2a5b6e790": the names of all files in it and below, and the beginnings of 256 of them. An
/// error that names the file when it cannot be read.
Result<std::string> describe_content(const std::string& path);

}  // namespace remuda::data
