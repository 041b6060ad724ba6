#include "data/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace remuda::data {
namespace {

// The layout of a header: https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html, "ustar Interchange
// Format".
constexpr size_t kBlock = 512;
constexpr uint64_t kMostNote = 1 << 20;  ///< a long name, or a list of what is special with a member
using Block = std::array<char, kBlock>;

/// Text up to the first zero, or to the field's end.
std::string_view field(const Block& block, size_t offset, size_t bytes) {
  const std::string_view text(block.data() + offset, bytes);
  return text.substr(0, text.find('\0'));
}

/// Octal digits, or, where the first bit is set, big-endian bytes (GNU tar, for what octal digits cannot hold).
std::optional<uint64_t> number(const Block& block, size_t offset, size_t bytes) {
  uint64_t value = 0;
  if (block[offset] & 0x80) {
    for (size_t i = 1; i < bytes; ++i) {
      if (value >> 55) return std::nullopt;
      value = value << 8 | uint8_t(block[offset + i]);
    }
    return value;
  }
  std::string_view text = field(block, offset, bytes);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find(' '));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The sum of a header's bytes, those of the sum itself counted as spaces.
bool sum_is_right(const Block& block) {
  constexpr size_t kSum = 148, kSumBytes = 8;
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += i >= kSum && i < kSum + kSumBytes ? ' ' : uint8_t(block[i]);
  return number(block, kSum, kSumBytes) == sum;
}

std::string name_in(const Block& block) {
  const bool posix = field(block, 257, 6) == "ustar";
  const std::string_view prefix = posix ? field(block, 345, 155) : std::string_view();
  return prefix.empty() ? std::string(field(block, 0, 100)) : fmt::format("{}/{}", prefix, field(block, 0, 100));
}

/// What a note of the pax format, lines of "LENGTH KEY=VALUE", says of the member after it.
void read_pax(std::string_view note, std::string& name, std::optional<uint64_t>& bytes) {
  while (!note.empty()) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(note.data(), note.data() + note.size(), length);
    const auto digits = size_t(end - note.data());
    if (error != std::errc() || length > note.size() || length < digits + 2 || note[length - 1] != '\n') return;
    const std::string_view line = note.substr(digits + 1, length - digits - 2);
    const size_t equal = std::min(line.find('='), line.size());
    const std::string_view key = line.substr(0, equal), value = line.substr(std::min(equal + 1, line.size()));
    if (key == "path") name = value;
    uint64_t size = 0;
    if (key == "size" && std::from_chars(value.data(), value.data() + value.size(), size).ec == std::errc())
      bytes = size;
    note.remove_prefix(length);
  }
}

class Listing {
 public:
  Listing(int fd, const std::string& name) : fd_(fd), archive_(name) {}

  Result<std::vector<TarMember>> all() {
    struct stat status{};
    if (::fstat(fd_, &status) != 0) return failed(fmt::format("cannot read {}: {}", archive_, errno_text(errno)));
    file_bytes_ = uint64_t(status.st_size);
    while (at_ + kBlock <= file_bytes_) {
      Block block;
      REMUDA_TRY(read(at_, block.data(), kBlock));
      if (std::ranges::all_of(block, [](char c) { return c == 0; })) break;
      REMUDA_TRY(add(block));
    }
    if (at_ == 0) return usage_error(fmt::format("{} is an empty tar archive", archive_));
    return std::move(members_);
  }

 private:
  Result<void> add(const Block& block) {
    if (!sum_is_right(block)) return damaged("its header has a wrong sum");
    std::optional<uint64_t> bytes = number(block, 124, 12);
    const char type = block[156];
    const bool is_note = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    if (bytes && !is_note && noted_bytes_) bytes = noted_bytes_;
    const uint64_t content = at_ + kBlock;
    if (!bytes || *bytes > file_bytes_ - content) return damaged("a member goes beyond the file's end");
    if (is_note) {
      REMUDA_TRY(take_note(type, content, *bytes));
    } else {
      const bool is_link = type == '1' || type == '2', is_file = type == '0' || type == '\0' || type == '7';
      const std::string name = noted_name_.empty() ? name_in(block) : noted_name_;
      if (is_link || is_file) members_.push_back({name, is_link, content, is_link ? 0 : *bytes});
      noted_name_.clear();
      noted_bytes_.reset();
    }
    at_ = std::min(file_bytes_, content + (*bytes + kBlock - 1) / kBlock * kBlock);
    return {};
  }

  Result<void> take_note(char type, uint64_t offset, uint64_t bytes) {
    if (bytes > kMostNote) return damaged(fmt::format("the note before a member has {} bytes", bytes));
    std::string note(bytes, '\0');
    REMUDA_TRY(read(offset, note.data(), note.size()));
    if (type == 'L') noted_name_ = note.substr(0, note.find('\0'));
    if (type == 'x') read_pax(note, noted_name_, noted_bytes_);
    return {};
  }

  Result<void> read(uint64_t offset, char* into, size_t bytes) const {
    if (::pread(fd_, into, bytes, off_t(offset)) == ssize_t(bytes)) return {};
    return failed(fmt::format("cannot read {} at byte {}: {}", archive_, offset, errno_text(errno)));
  }

  tl::unexpected<Error> damaged(const std::string& what) const {
    return usage_error(fmt::format("{} is no tar archive, or a damaged one: {} (at byte {})", archive_, what, at_));
  }

  int fd_;
  const std::string& archive_;
  uint64_t file_bytes_ = 0, at_ = 0;
  std::string noted_name_;  ///< for the next member
  std::optional<uint64_t> noted_bytes_;
  std::vector<TarMember> members_;
};

}  // namespace

Result<std::vector<TarMember>> list_tar(int fd, const std::string& name) { return Listing(fd, name).all(); }

}  // namespace remuda::data
