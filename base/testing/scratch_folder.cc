#include "base/testing/scratch_folder.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

namespace remuda {
namespace fs = std::filesystem;
namespace {

std::string make_unique_folder(const fs::path& within) {
  std::string path = fs::canonical(within) / "remuda-scratch.XXXXXX";
  if (!::mkdtemp(path.data())) throw fs::filesystem_error("mkdtemp", path, {errno, std::generic_category()});
  return path;
}

}  // namespace

ScratchFolder::ScratchFolder(const fs::path& within) : path_(make_unique_folder(within)) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

std::string ScratchFolder::path(std::string_view name) const { return path_ + "/" + std::string(name); }

std::string ScratchFolder::write(std::string_view name, std::string_view bytes) const {
  std::string file = path(name);
  fs::create_directories(fs::path(file).parent_path());
  std::ofstream stream;
  stream.exceptions(std::ios::failbit | std::ios::badbit);
  stream.open(file, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  return file;
}

void ScratchFolder::link(std::string_view name, std::string_view target) const {
  fs::create_directories(fs::path(path(name)).parent_path());
  fs::create_symlink(target, path(name));
}

std::string ScratchFolder::make_folder(std::string_view name) const {
  fs::create_directories(path(name));
  return path(name);
}

void ScratchFolder::remove(std::string_view name) const { fs::remove_all(path(name)); }

std::string ScratchFolder::read(std::string_view name) const {
  std::ifstream stream(path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool ScratchFolder::has(std::string_view name) const { return fs::exists(path(name)); }

std::vector<std::string> ScratchFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

}  // namespace remuda
