#include "weights/reader.h"

#include <cerrno>
#include <cstring>
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

/// The first bytes are read, not looked at in the mapping: so a file that shrinks is an error, whenever it does.
Result<void> read_at(int fd, const std::string& path, uint64_t at, std::span<char> to) {
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
  REMUDA_ASSIGN(reader.file_, MappedFile::map(reader.fd_.get(), path));
  const uint64_t size = reader.file_.bytes().size();
  uint64_t length = 0;
  char brace = 0;
  if (size <= kLengthBytes) return no_safetensors(path, 0);
  REMUDA_TRY(read_at(reader.fd_.get(), path, 0, {reinterpret_cast<char*>(&length), kLengthBytes}));
  REMUDA_TRY(read_at(reader.fd_.get(), path, kLengthBytes, {&brace, 1}));
  if (brace != '{' || length > kMostHeaderBytes) return no_safetensors(path, length);
  if (length > size - kLengthBytes)
    return damaged(path, fmt::format("its header has {} bytes, but the file only {}", length, size));

  std::string text(length, '\0');
  REMUDA_TRY(read_at(reader.fd_.get(), path, kLengthBytes, text));
  auto header = parse_header(text, size - kLengthBytes - length);
  if (!header) return damaged(path, header.error().message);
  reader.header_ = std::move(*header);
  reader.data_ = reader.file_.bytes().subspan(kLengthBytes + length);
  return reader;
}

Result<void> Reader::read(const TensorInfo& tensor, uint64_t first, std::span<std::byte> to) const {
  REMUDA_CHECK(first <= tensor.bytes() && to.size() <= tensor.bytes() - first && tensor.end <= data_.size(),
               "what is read is of the tensor");
  struct stat info{};
  if (::fstat(fd_.get(), &info) != 0 || static_cast<uint64_t>(info.st_size) < file_.bytes().size())
    return cut_off(path_);
  if (!to.empty()) std::memcpy(to.data(), data_.data() + tensor.begin + first, to.size());
  return {};
}

}  // namespace remuda::weights
