#include "doctor/torch_files.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/file.h"
#include "base/text.h"

namespace remuda::doctor {
namespace {

constexpr size_t kLongestList = 1024;
constexpr size_t kLongestValue = 100;
constexpr std::string_view kTargetStarts[] = {"sm_", "compute_", "gfx"};

bool is_word_byte(char byte) { return std::isalnum(static_cast<unsigned char>(byte)) || byte == '_'; }

/// sm_80, sm_90a, compute_90, gfx90a, gfx90a:xnack-
bool is_target(std::string_view word) {
  word = word.substr(0, word.find(':'));
  for (const std::string_view start : kTargetStarts) {
    if (!word.starts_with(start)) continue;
    word.remove_prefix(start.size());
    return word.size() >= 2 && word.size() <= 5 && std::isdigit(static_cast<unsigned char>(word[0])) &&
           std::ranges::all_of(word, [](char byte) { return std::isxdigit(static_cast<unsigned char>(byte)); });
  }
  return false;
}

/// The words of a list of targets; none when it contains anything else.
std::vector<std::string> targets_of(std::string_view list) {
  std::vector<std::string> words = split(list, ' ');
  std::erase(words, "");
  return std::ranges::all_of(words, is_target) ? words : std::vector<std::string>{};
}

/// Where, from `from` on, a text begins with `start` right after a NUL; the library's size when nowhere. Uses memmem,
/// as a library has tens of megabytes.
size_t find_begin(std::string_view library, std::string_view start, size_t from) {
  if (library.empty()) return 0;  // where its bytes have no address
  const std::string needle = '\0' + std::string(start);
  const void* found = ::memmem(library.data() + from, library.size() - from, needle.data(), needle.size());
  return found ? static_cast<size_t>(static_cast<const char*>(found) - library.data()) + 1 : library.size();
}

/// The text from `at` to the next NUL.
std::string_view text_at(std::string_view library, size_t at) {
  const size_t end = library.find('\0', at);
  if (end == std::string_view::npos || end - at > kLongestList) return {};
  return library.substr(at, end - at);
}

Reading<std::vector<std::string>> read_targets(const std::string& folder, bool is_cuda) {
  if (is_cuda)
    if (const auto text = read_text(folder + "/include/ATen/cuda/CUDAConfig.h"))
      if (auto targets = gencode_targets(*text); !targets.empty()) return targets;
  const std::string path = folder + "/lib/libtorch_python.so";
  const auto library = open_for_reading(path).and_then([&](const Fd& fd) { return MappedFile::map(fd.get(), path); });
  if (!library) return Missing{MissingReason::unsupported, library.error().message};
  const auto bytes = library->bytes();
  auto targets = listed_targets({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (targets.empty())
    return Missing{MissingReason::unsupported,
                   "this build of PyTorch does not report its targets without being started"};
  return targets;
}

}  // namespace

std::string version_value(std::string_view text, std::string_view name) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(name) || line.size() == name.size() || is_word_byte(line[name.size()])) continue;
    const size_t equals = line.find('=');
    const size_t begin = line.find_first_of("'\"", equals);
    if (equals == std::string::npos || begin == std::string::npos) return "";
    const size_t end = line.find(line[begin], begin + 1);
    if (end == std::string::npos || end - begin > kLongestValue) return "";
    return printable(line.substr(begin + 1, end - begin - 1));
  }
  return "";
}

std::vector<std::string> gencode_targets(std::string_view text) {
  constexpr std::string_view kCode = "code=";
  std::vector<std::string> targets;
  for (size_t at = text.find(kCode); at != std::string_view::npos; at = text.find(kCode, at)) {
    at += kCode.size();
    const size_t end = std::min(text.find_first_of(";\" \n", at), text.size());
    for (std::string word : split(text.substr(at, end - at), ',')) {
      std::erase_if(word, [](char byte) { return byte == '[' || byte == ']'; });
      if (is_target(word)) targets.push_back(std::move(word));
    }
  }
  return targets;
}

std::vector<std::string> listed_targets(std::string_view library) {
  std::vector<std::string> longest;
  bool alone = true;
  for (const std::string_view start : kTargetStarts)
    for (size_t at = find_begin(library, start, 0); at < library.size(); at = find_begin(library, start, at)) {
      std::vector<std::string> targets = targets_of(text_at(library, at));
      if (targets.size() < longest.size() || targets.empty()) continue;
      alone = targets.size() > longest.size() || (alone && targets == longest);
      longest = std::move(targets);
    }
  return alone ? longest : std::vector<std::string>{};
}

Reading<Torch> read_torch(const std::string& folder) {
  const auto text = read_text(folder + "/version.py", 1 << 16);
  if (!text) return Missing{MissingReason::unsupported, text.error().message};
  Torch torch{.folder = folder,
              .version = version_value(*text, "__version__"),
              .cuda = version_value(*text, "cuda"),
              .hip = version_value(*text, "hip"),
              .targets = Missing{MissingReason::unsupported, "this build of PyTorch is for CPUs alone"}};
  if (torch.version.empty()) return Missing{MissingReason::unsupported, folder + "/version.py has no version"};
  if (!torch.cuda.empty() || !torch.hip.empty()) torch.targets = read_targets(folder, !torch.cuda.empty());
  return torch;
}

}  // namespace remuda::doctor
