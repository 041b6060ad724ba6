#include "data/content.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <span>
#include <unistd.h>
#include <vector>
#include <xxhash.h>

#include "base/file.h"

namespace remuda::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadWhole = 64 << 20;
constexpr size_t kParts = 256;
constexpr size_t kPartBytes = 64 << 10;

class Hash {
 public:
  Hash() { XXH3_64bits_reset(state_.get()); }
  void add(std::span<const std::byte> bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }
  uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

Result<std::vector<std::string>> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) files.push_back(entry->path().lexically_relative(folder).string());
  }
  if (error) return usage_error(fmt::format("cannot read the folder {}: {}", folder, error.message()));
  std::ranges::sort(files);
  return files;
}

Result<std::string> describe_folder(const std::string& folder) {
  REMUDA_ASSIGN(const std::vector<std::string> files, files_in(folder));
  Hash hash;
  for (const std::string& file : files) hash.add(std::as_bytes(std::span(file.c_str(), file.size() + 1)));
  for (size_t i = 0; i < files.size(); i += std::max<size_t>(1, files.size() / kParts)) {
    REMUDA_ASSIGN(const Fd fd, open_for_reading((fs::path(folder) / files[i]).string()));
    std::vector<std::byte> head(kPartBytes);
    head.resize(size_t(std::max<ssize_t>(0, ::pread(fd.get(), head.data(), head.size(), 0))));
    hash.add(head);
  }
  return fmt::format("{} files, hash {:016x}", files.size(), hash.value());
}

}  // namespace

Result<std::string> describe_content(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return describe_folder(path);
  REMUDA_ASSIGN(const Fd fd, open_for_reading(path));
  REMUDA_ASSIGN(const MappedFile file, MappedFile::map(fd.get(), path));
  const auto bytes = file.bytes();
  Hash hash;
  if (bytes.size() <= kReadWhole) {
    hash.add(bytes);
  } else {
    for (size_t part = 0; part < kParts; ++part)
      hash.add(bytes.subspan((bytes.size() - kPartBytes) / (kParts - 1) * part, kPartBytes));
    hash.add(bytes.last(kPartBytes));
  }
  return fmt::format("{} bytes, hash {:016x}", bytes.size(), hash.value());
}

}  // namespace remuda::data
