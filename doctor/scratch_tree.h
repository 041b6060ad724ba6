// A folder of made files, for tests of what reads them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace remuda::doctor {

class ScratchTree {
 public:
  ScratchTree() : root_(std::filesystem::temp_directory_path() / "remuda_doctor_test.XXXXXX") {
    if (!::mkdtemp(root_.data())) std::abort();
    root_ = std::filesystem::canonical(root_);
  }
  ScratchTree(const ScratchTree&) = delete;
  ~ScratchTree() { std::filesystem::remove_all(root_); }

  std::string at(const std::string& path) const { return root_ + "/" + path; }
  void write(const std::string& path, const std::string& bytes) const {
    make_parent(path);
    std::ofstream(at(path), std::ios::binary) << bytes;
  }
  /// Makes `path` a symbolic link to `target`, which is taken as it stands.
  void link(const std::string& path, const std::string& target) const {
    make_parent(path);
    std::filesystem::create_symlink(target, at(path));
  }
  void folder(const std::string& path) const { std::filesystem::create_directories(at(path)); }

 private:
  void make_parent(const std::string& path) const {
    std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
  }
  std::string root_;
};

}  // namespace remuda::doctor
