// What people have instead of the files that can be trained on: named, so that the refusal shows the way.
#pragma once

#include <string>

#include "base/result.h"

namespace remuda::data {

/// The kind of file by its first bytes: "a PNG image", "a NumPy file", "text (CSV, JSON or the like)"; "a folder";
/// empty where it is none of those known, and so may be data, or cannot be read.
std::string foreign_kind(const std::string& path);

/// An error for a file or folder of such a kind: what it is, which formats there are, and where it is shown how to
/// write them.
Result<void> refuse_foreign(const std::string& path);

}  // namespace remuda::data
