#include "weights/reader.h"

#include <cerrno>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
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
  Reader reader;
  reader.path_ = path;
  REMUDA_ASSIGN(reader.fd_, open_for_reading(path));
  struct stat info{};
  if (::fstat(reader.fd_.get(), &info) != 0)
    return usage_error(fmt::format("cannot read {}: {}", path, errno_text(errno)));
  const auto size = static_cast<uint64_t>(info.st_size);
  uint64_t length = 0;
  char brace = 0;
  if (size <= kLengthBytes) return no_safetensors(path, 0);
  REMUDA_TRY(read_at(reader.fd_.get(), path, 0, std::as_writable_bytes(std::span(&length, 1))));
  REMUDA_TRY(read_at(reader.fd_.get(), path, kLengthBytes, std::as_writable_bytes(std::span(&brace, 1))));
  if (brace != '{' || length > kMostHeaderBytes) return no_safetensors(path, length);
  if (length > size - kLengthBytes)
    return damaged(path, fmt::format("its header has {} bytes, but the file only {}", length, size));

  std::string text(length, '\0');
  REMUDA_TRY(read_at(reader.fd_.get(), path, kLengthBytes, std::as_writable_bytes(std::span(text))));
  auto header = parse_header(text, size - kLengthBytes - length);
  if (!header) return damaged(path, header.error().message);
  reader.header_ = std::move(*header);
  reader.data_at_ = kLengthBytes + length;
  reader.data_bytes_ = size - reader.data_at_;
  return reader;
}

Result<void> Reader::read(const TensorInfo& tensor, uint64_t first, std::span<std::byte> to) const {
  REMUDA_CHECK(first <= tensor.bytes() && to.size() <= tensor.bytes() - first && tensor.end <= data_bytes_,
               "what is read is of the tensor");
  return read_at(fd_.get(), path_, data_at_ + tensor.begin + first, to);
}

}  // namespace remuda::weights
