#include "probe/sysfs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "base/result.h"
#include "base/text.h"

namespace remuda::probe::sysfs {
namespace {

constexpr int kMaxIndex = 65535;

Missing unsupported(std::string sentence) { return {MissingReason::unsupported, std::move(sentence)}; }

Missing why_missing(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return unsupported(fmt::format("there is no {}", path));
    case EACCES:
    case EPERM:
      return {MissingReason::denied, fmt::format("{} may not be read: {}", path, errno_text(error))};
    case EIO:
    case ENODEV:
    case ENXIO:
      return {MissingReason::lost, fmt::format("{} no longer answers: {}", path, errno_text(error))};
    default:
      return unsupported(fmt::format("{} cannot be read: {}", path, errno_text(error)));
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kWhite(" \t\r\n\v\f\0", 7);
  const size_t first = text.find_first_not_of(kWhite);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhite) - first + 1);
}

}  // namespace

Reading<std::string> read(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) return why_missing(path, errno);
  if (!S_ISREG(info.st_mode)) return unsupported(fmt::format("{} is not a regular file", path));
  std::string text;
  std::array<char, 4096> chunk;
  while (const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size())) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return why_missing(path, errno);
    text.append(chunk.data(), static_cast<size_t>(got));
    if (text.size() > kMaxBytes) return unsupported(fmt::format("{} is larger than {} bytes", path, kMaxBytes));
  }
  return std::string(trimmed(text));
}

Reading<std::string> read_word(const std::string& path) {
  auto text = read(path);
  if (!text.has_value()) return text;
  if (text.value().empty()) return unsupported(fmt::format("{} is empty", path));
  return printable(text.value());
}

Reading<int64_t> read_integer(const std::string& path, int64_t low, int64_t high) {
  const auto text = read(path);
  if (!text.has_value()) return text.missing();
  const auto value = parse_number<int64_t>(text.value());
  if (!value) return unsupported(fmt::format("{} holds no number", path));
  if (*value < low || *value > high) return unsupported(fmt::format("{} holds {}, which cannot be", path, *value));
  return *value;
}

Reading<std::vector<int>> read_index_list(const std::string& path) {
  const auto text = read(path);
  if (!text.has_value()) return text.missing();
  if (auto list = index_list(text.value())) return std::move(*list);
  return unsupported(fmt::format("{} holds no list such as 0-3,8", path));
}

std::vector<std::string> entries(const std::string& folder, size_t most) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), &::closedir);
  if (!stream) return names;
  for (const dirent* entry; names.size() < most && (entry = ::readdir(stream.get()));)
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

std::vector<int> numbered(const std::string& folder, std::string_view prefix) {
  std::vector<int> numbers;
  for (const std::string& name : entries(folder)) {
    if (!name.starts_with(prefix)) continue;
    const auto number = parse_number<int64_t>(std::string_view(name).substr(prefix.size()));
    if (number && *number >= 0 && *number <= std::numeric_limits<int>::max())
      numbers.push_back(static_cast<int>(*number));
  }
  std::ranges::sort(numbers);
  return numbers;
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::string real_path(const std::string& path) {
  std::error_code error;
  return std::filesystem::canonical(path, error).string();
}

std::string link_name(const std::string& path) {
  std::error_code error;
  return printable(std::filesystem::read_symlink(path, error).filename().string());
}

std::optional<std::vector<int>> index_list(std::string_view text) {
  std::vector<int> indices;
  if (text.empty()) return indices;
  for (const std::string& range : split(text, ',')) {
    const size_t dash = range.find('-');
    const auto first = parse_number<int64_t>(std::string_view(range).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : parse_number<int64_t>(std::string_view(range).substr(dash + 1));
    if (!first || !last || *first < 0 || *first > *last || *last > kMaxIndex) return std::nullopt;
    if (!indices.empty() && *first <= indices.back()) return std::nullopt;
    for (int64_t i = *first; i <= *last; ++i) indices.push_back(static_cast<int>(i));
  }
  return indices;
}

}  // namespace remuda::probe::sysfs
