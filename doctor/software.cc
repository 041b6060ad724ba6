#include "doctor/software.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <unistd.h>

#include "base/env.h"
#include "base/json.h"
#include "base/text.h"
#include "base/version_number.h"
#include "device/fields.h"
#include "doctor/question.h"
#include "doctor/torch_files.h"

namespace remuda::doctor {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFolders = 100;

/// Where a library of collectives may be, and the name of its package where pip installed it.
struct Wanted {
  std::array<const char*, 2> in_packages;  ///< in a folder of Python packages
  const char* in_system;
  const char* package;  ///< prefix of the name of its .dist-info folder; empty: none
};
constexpr Wanted kNccl{{"nvidia/nccl/lib/libnccl.so.2", "torch/lib/libnccl.so.2"}, "libnccl.so.2", "nvidia_nccl"};
constexpr Wanted kRccl{{"torch/lib/librccl.so", "torch/lib/librccl.so.1"}, "librccl.so.1", ""};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// nvidia_nccl_cu12-2.21.5.dist-info -> 2.21.5
std::optional<std::string> packaged_version(const std::string& folder, std::string_view package) {
  if (package.empty()) return std::nullopt;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    const size_t dash = name.find('-'), tail = name.rfind(".dist-info");
    if (!name.starts_with(package) || dash > tail || tail == std::string::npos) continue;
    return printable(name.substr(dash + 1, tail - dash - 1));
  }
  return std::nullopt;
}

/// libnccl.so.2 -> libnccl.so.2.21.5 -> 2.21.5
Reading<std::string> version_by_name(const std::string& path) {
  std::error_code error;
  const std::string name = fs::canonical(path, error).filename();
  const size_t at = name.find(".so.");
  if (error || at == std::string::npos || leading_numbers(name.substr(at + 4)).size() < 2)
    return Missing{MissingReason::unsupported, "its file's name does not have the version"};
  return printable(name.substr(at + 4));
}

Library describe(const std::string& path, const std::string& folder, const Wanted& wanted) {
  if (auto version = packaged_version(folder, wanted.package)) return {path, *version};
  return {path, version_by_name(path)};
}

Reading<Library> find_library(const Wanted& wanted, const std::vector<std::string>& python_folders,
                              const std::vector<std::string>& library_folders) {
  for (const std::string& folder : python_folders)
    for (const char* within : wanted.in_packages)
      if (const std::string path = fmt::format("{}/{}", folder, within); is_file(path))
        return describe(path, folder, wanted);
  for (const std::string& folder : library_folders)
    if (const std::string path = fmt::format("{}/{}", folder, wanted.in_system); is_file(path))
      return describe(path, folder, wanted);
  return Missing{MissingReason::unsupported, fmt::format("no {} was found", wanted.in_system)};
}

Reading<Torch> find_torch(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders)
    if (is_file(folder + "/torch/version.py")) return read_torch(folder + "/torch");
  return Missing{MissingReason::unsupported, "python3 finds no PyTorch"};
}

}  // namespace

std::string python_program() {
  const std::string active = env::get(env::virtual_env).value_or("") + "/bin/python3";
  return active.size() > sizeof "/bin/python3" && ::access(active.c_str(), X_OK) == 0 ? active : "python3";
}

Result<std::vector<std::string>> python_folders(const std::string& python) {
  REMUDA_ASSIGN(const std::string text, output_of({python, "-c", "import sys; print('\\n'.join(sys.path))"}));
  std::vector<std::string> folders = split(text, '\n');
  std::erase_if(folders, [](const std::string& folder) { return !folder.starts_with('/'); });
  folders.resize(std::min(folders.size(), kMostFolders));
  return folders;
}

std::vector<std::string> system_library_folders() {
  return {"/usr/lib/x86_64-linux-gnu",
          "/usr/lib/aarch64-linux-gnu",
          "/usr/lib64",
          "/usr/lib",
          "/usr/local/lib",
          "/usr/local/cuda/lib64",
          "/opt/rocm/lib"};
}

Software find_software(const std::vector<std::string>& python_folders,
                       const std::vector<std::string>& library_folders) {
  return {.torch = find_torch(python_folders),
          .nccl = find_library(kNccl, python_folders, library_folders),
          .rccl = find_library(kRccl, python_folders, library_folders)};
}

Software no_software(const std::string& why) {
  const Missing missing{MissingReason::unsupported, why};
  return {.torch = missing, .nccl = missing, .rccl = missing};
}

std::string to_text(const Software& software) { return to_line(fields::write(software)); }

Result<Software> parse_software(std::string_view text) {
  REMUDA_ASSIGN(const Json json, parse_json(text, "python3"));
  Software software;
  REMUDA_TRY(fields::read(json, "python3", software));
  return software;
}

}  // namespace remuda::doctor
