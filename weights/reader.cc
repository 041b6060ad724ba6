#include "weights/reader.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "data/foreign.h"
#include "weights/parse_header.h"

namespace remuda::weights {
namespace {

auto cut_off(const std::string& path) {
  return usage_error(fmt::format("{} has become shorter while it was read", path));
}

Result<void> read_at(int fd, const std::string& path, uint64_t at, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got = ::pread(fd, to.data(), to.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return usage_error(fmt::format("cannot read {}: {}", path, errno_text(errno)));
    if (got == 0) return cut_off(path);
    to = to.subspan(static_cast<size_t>(got));
    at += static_cast<uint64_t>(got);
  }
  return {};
}

/// A pickle begins with its protocol, 2 to 5.
bool is_pickle(uint64_t first_bytes) { return (first_bytes & 0xff) == 0x80 && (first_bytes >> 8 & 0xff) - 2 <= 3; }

auto no_safetensors(const std::string& path, uint64_t first_bytes) {
  std::string kind = data::foreign_kind(path);
  if (kind.empty() && is_pickle(first_bytes)) kind = "a Python pickle";
  return usage_error(
      fmt::format("{} is {}; weights are read from safetensors files: in Python, "
                  "safetensors.torch.save_file(model.state_dict(), FILE) writes one",
                  path, kind.empty() ? "no safetensors file" : kind));
}

auto damaged(const std::string& path, const std::string& wrong) {
  return usage_error(fmt::format("{} is a damaged safetensors file: {}", path, wrong));
}

}  // namespace

Result<Reader> Reader::open(const std::string& path) {
  REMUDA_ASSIGN(Fd fd, open_for_reading(path));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return usage_error(fmt::format("cannot read {}: {}", path, errno_text(errno)));
  return open(path, uint64_t(info.st_size),
              [path, fd = std::make_shared<const Fd>(std::move(fd))](uint64_t at, std::span<std::byte> to) {
                return read_at(fd->get(), path, at, to);
              });
}

Result<Reader> Reader::open(const std::string& path, uint64_t bytes, ReadAt read) {
  constexpr uint64_t kBraceAt = kLengthBytes;
  if (bytes <= kBraceAt) return no_safetensors(path, 0);
  std::array<std::byte, kBraceAt + 1> start{};
  REMUDA_TRY(read(0, start));
  uint64_t length = 0;
  std::memcpy(&length, start.data(), sizeof length);
  if (char(start[kBraceAt]) != '{' || length > kMostHeaderBytes) return no_safetensors(path, length);
  if (length > bytes - kLengthBytes)
    return damaged(path, fmt::format("its header has {} bytes, but the file only {}", length, bytes));

  std::string text(length, '\0');
  REMUDA_TRY(read(kLengthBytes, std::as_writable_bytes(std::span(text))));
  auto header = parse_header(text, bytes - kLengthBytes - length);
  if (!header) return damaged(path, header.error().message);
  Reader reader;
  reader.path_ = path;
  reader.read_ = std::move(read);
  reader.header_ = std::move(*header);
  reader.data_at_ = kLengthBytes + length;
  reader.data_bytes_ = bytes - reader.data_at_;
  return reader;
}

Result<void> Reader::read(const TensorInfo& tensor, uint64_t first, std::span<std::byte> to) const {
  REMUDA_CHECK(first <= tensor.bytes() && to.size() <= tensor.bytes() - first && tensor.end <= data_bytes_,
               "what is read is of the tensor");
  return read_(place_of(tensor) + first, to);
}

}  // namespace remuda::weights
