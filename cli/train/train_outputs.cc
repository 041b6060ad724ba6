#include "cli/train/train_outputs.h"

#include <filesystem>
#include <fmt/format.h>

#include "base/file.h"

namespace remuda::cli {
namespace {

namespace fs = std::filesystem;

/// A relative name of nothing that is there stays relative unless it is made absolute first.
fs::path where_it_would_be(const std::string& file) {
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(file, error), error);
}

/// By any of its names, or where it would be.
bool is_same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code error;
  return fs::equivalent(a, b, error) || where_it_would_be(a) == where_it_would_be(b);
}

}  // namespace

Result<void> check_distinct(std::span<const job::Setting> written, std::span<const std::string> read) {
  for (size_t i = 0; i < written.size(); ++i) {
    const auto& [name, file] = written[i];
    for (const std::string& input : read)
      if (is_same_file(file, input))
        return usage_error(fmt::format("{} {} would replace what the run reads", name, file));
    for (const job::Setting& other : written.first(i))
      if (is_same_file(file, other.value))
        return usage_error(fmt::format("{} and {} name the same file", other.key, name));
  }
  return {};
}

Result<void> check_writable(std::span<const job::Setting> written) {
  for (const job::Setting& output : written) REMUDA_TRY(PendingFile::create(output.value));
  return {};
}

}  // namespace remuda::cli
