// CheckedFile: one of a checkpoint's files, open, of which nothing is given away that is not what the manifest says.
//
// Each kSummedBytes of it are read into memory of our own, past the page cache where the file system can, compared with
// their sum there, and only then copied to where they are wanted: what another process makes of the file meanwhile is
// damage or has come too late. That costs one pass over what is wanted. Of a manifest of version 1 only the length is
// compared: its sums are of whole files, see verify().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "checkpoint/manifest.h"

namespace remuda::checkpoint {

class CheckedFile {
 public:
  /// A usage error where it cannot be read, or has not as many bytes as the manifest, of that version, says.
  static Result<CheckedFile> open(const std::string& folder, const StoredFile& file, int version);

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return file_.bytes; }

  /// Fills `to` with what stands from the byte `at` on. A usage error that names the file where that is damaged.
  Result<void> read(uint64_t at, std::span<std::byte> to) const;

 private:
  friend class Fetch;
  CheckedFile(std::string path, Fd fd, StoredFile file, bool has_sums)
      : path_(std::move(path)), fd_(std::move(fd)), file_(std::move(file)), has_sums_(has_sums) {}
  Result<void> read_past_cache(uint64_t at, std::span<std::byte> to, size_t needed) const;
  Result<void> compare(uint64_t at, std::span<const std::byte> bytes) const;

  std::string path_;
  Fd fd_;
  StoredFile file_;
  bool has_sums_;
};

/// Bytes of a file, and where they belong: nowhere, if they are only to be compared.
struct Wanted {
  const CheckedFile* file = nullptr;
  uint64_t at = 0, bytes = 0;
  std::byte* to = nullptr;
};

/// Reads all of them in one pass, some MiB at once in each of a few threads. Where it fails, some of them may have been
/// filled: with what the manifest says.
Result<void> fetch(const std::vector<Wanted>& wanted);

}  // namespace remuda::checkpoint
