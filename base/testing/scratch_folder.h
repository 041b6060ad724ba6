// ScratchFolder: a temporary folder. For tests and benches only: no program links it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace remuda {

/// A new folder that only its owner can read, removed with its content when this object is destroyed. Names are
/// relative to it and may contain folders, which are made. Failures throw: a test cannot go on then.
class ScratchFolder {
 public:
  /// In the system's place for temporary files.
  ScratchFolder() : ScratchFolder(std::filesystem::temp_directory_path()) {}
  explicit ScratchFolder(const std::filesystem::path& within);
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  /// Absolute, without symbolic links.
  const std::string& path() const { return path_; }
  std::string path(std::string_view name) const;

  /// Writes a file whole, and gives its path.
  std::string write(std::string_view name, std::string_view bytes) const;
  /// Makes a symbolic link to `target`, which is used unchanged and need not exist.
  void link(std::string_view name, std::string_view target) const;
  std::string make_folder(std::string_view name) const;
  void remove(std::string_view name) const;

  /// The bytes of a file; none where there is no such file.
  std::string read(std::string_view name) const;
  bool has(std::string_view name) const;
  /// The names of its direct entries, sorted.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

}  // namespace remuda
