#include "cli/train/script_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "data/foreign.h"
#include "weights/reader.h"

namespace remuda::cli {
namespace {

/// The end of a file, which in a ZIP archive contains the list of names.
Result<std::string> tail_of(const std::string& path) {
  constexpr off_t kTail = 4 << 20;
  REMUDA_ASSIGN(const Fd fd, open_for_reading(path));
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  if (size < 0) return failed(fmt::format("{} is no plain file", path));
  std::string tail(static_cast<size_t>(std::min(size, kTail)), '\0');
  const ssize_t got = ::pread(fd.get(), tail.data(), tail.size(), size - static_cast<off_t>(tail.size()));
  if (got != static_cast<ssize_t>(tail.size()))
    return failed(fmt::format("cannot read {}: {}", path, errno_text(errno)));
  return tail;
}

}  // namespace

/// TorchScript is a ZIP archive with constants.pkl in it; torch.save() writes one without.
Result<void> check_script_file(const std::string& path, const std::string& key) {
  constexpr const char* kWay =
      "in Python, torch.jit.script(module).save(FILE) writes one (docs/train.md says what it must take and give)";
  constexpr const char* kEndOfZip = "PK\x05\x06";
  REMUDA_ASSIGN(const std::string tail, tail_of(path));
  const std::string kind = data::foreign_kind(path);
  if (kind.starts_with("a ZIP archive") && tail.find(kEndOfZip) == std::string::npos)
    return usage_error(
        fmt::format("{} is a damaged TorchScript file: its end is missing, as after a copy that broke off", path));
  if (tail.find("constants.pkl") != std::string::npos) return {};
  const bool saved = tail.find("data.pkl") != std::string::npos || kind.find("torch.save()") != std::string::npos;
  if (saved)
    return usage_error(
        fmt::format("{} is a file of torch.save(), which holds values but no program; {} is a TorchScript file: {}",
                    path, key, kWay));
  if (weights::Reader::open(path))
    return usage_error(
        fmt::format("{} is a safetensors file, which holds values but no program; weights are given as model.weights, "
                    "and {} is a TorchScript file: {}",
                    path, key, kWay));
  return usage_error(fmt::format("{} is no TorchScript file; {}", path, kWay));
}

}  // namespace remuda::cli
