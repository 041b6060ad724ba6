// Files: owned descriptors, read-only mappings, and writes that either complete or leave nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>

#include "base/result.h"

namespace remuda {

/// Owns a file descriptor and closes it.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// A read-only mapping of a whole regular file: pages are read when touched, so size costs address space only.
class MappedFile {
 public:
  /// Maps an open file; its descriptor may be closed afterwards. An empty file gives an empty mapping.
  static Result<MappedFile> map(int fd, std::string_view name);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// Opens a regular file for reading; never waits. The error names the path and what is wrong with it.
Result<Fd> open_for_reading(const std::string& path);

/// Reads a small text file whole, or a pipe's text up to its end (see read_all.h); refuses more than `limit` bytes.
Result<std::string> read_text(const std::string& path, size_t limit = 16 << 20);

/// Writes all bytes to a descriptor, over short writes and EINTR.
Result<void> write_all(int fd, std::string_view bytes, std::string_view name);

/// Fails where an open file has no name any more: it was removed, or its folder was, and ends with its descriptor.
Result<void> check_kept(int fd, std::string_view name);

/// A file open for writing that is not visible until it is complete. It has no name, or, where the file system has no
/// such files (O_TMPFILE), a name that no other program uses; removed with this object. A file with such a name stays
/// after kill -9.
class NewFile {
 public:
  /// In an open folder, which outlives it. Where it cannot be made, the object is false, and errno has the cause.
  static NewFile in(int folder, mode_t mode);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  explicit operator bool() const { return static_cast<bool>(fd_); }
  int fd() const { return fd_.get(); }

  /// Gives it this name in its folder, too; false, with errno, where the name is in use.
  bool link_as(const std::string& name) const;
  /// Replaces the entry of this name in its folder; false, with errno, where that fails.
  bool rename_to(const std::string& name);

 private:
  explicit NewFile(int folder) : folder_(folder) {}
  int folder_;
  std::string name_;  ///< empty: none
  Fd fd_;
};

/// A file that appears under its name only when commit() has put it there whole: written beside it, synced, renamed.
/// Without commit() nothing is left; not even after kill -9, where the file system supports O_TMPFILE.
/// A symbolic link stays one and its target is written; the new file gets the permissions of the one it replaces.
class PendingFile {
 public:
  /// Fails now, before any work is done, if the file cannot be written later: no such folder, a folder that
  /// cannot be written, a file that is read-only (for root too) or not a regular one.
  static Result<PendingFile> create(const std::string& path);

  /// From here on, whole pages from memory that begins with a page go past the page cache, where the file system can,
  /// up to the first bytes that are none: of a large file, that costs the processor little and takes no memory from
  /// others.
  void bypass_cache();
  /// Adds to what commit() will show. What has failed once stays failed: commit() then fails, too.
  Result<void> append(std::string_view bytes);
  /// To be called once. On failure the previous file is not changed. It is one, too, where the folder was moved, so
  /// that the file would be under another path.
  Result<void> commit();
  /// append() and commit() of a file that is written in one go.
  Result<void> commit(std::string_view content);

 private:
  PendingFile(std::string path, Fd folder, NewFile file);
  std::string_view append_pages(std::string_view bytes);
  void use_cache();
  std::string path_;
  Fd folder_;
  NewFile file_;
  uint64_t unsynced_ = 0;  ///< bytes
  bool failed_ = false, committed_ = false, bypasses_cache_ = false;
};

/// A scratch file in TMPDIR that has no name and is gone with its descriptor.
Result<Fd> scratch_file();

}  // namespace remuda
