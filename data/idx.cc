#include "data/idx.h"

#include <fmt/format.h>

#include "data/gzip.h"

namespace remuda::data {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr size_t kMostDimensions = 4;
constexpr uint64_t kMostValues = uint64_t{1} << 46;

uint32_t big_endian(std::span<const std::byte> bytes) {
  uint32_t value = 0;
  for (const std::byte byte : bytes.first(4)) value = value << 8 | std::to_integer<uint32_t>(byte);
  return value;
}

}  // namespace

Result<IdxHeader> parse_idx_header(std::span<const std::byte> head, const std::string& name) {
  const auto byte = [&](size_t i) { return std::to_integer<uint8_t>(head[i]); };
  if (head.size() < 4)
    return usage_error(fmt::format("{} is not an IDX file: it has only {} bytes", name, head.size()));
  if (byte(0) != 0 || byte(1) != 0)
    return usage_error(
        fmt::format("{} is not an IDX file: it begins with {:02x} {:02x}, not 00 00", name, byte(0), byte(1)));
  if (byte(2) != kUnsignedByte)
    return usage_error(
        fmt::format("{} holds IDX values of type 0x{:02x}; unsigned bytes (0x08) can be read", name, byte(2)));
  const size_t count = byte(3);
  if (count < 1 || count > kMostDimensions)
    return usage_error(
        fmt::format("{} is an IDX array of {} dimensions; 1 to {} can be read", name, count, kMostDimensions));
  if (head.size() < 4 + 4 * count) return usage_error(fmt::format("{} is truncated within its IDX header", name));
  IdxHeader header;
  header.values = 1;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t dimension = big_endian(head.subspan(4 + 4 * i));
    if (dimension == 0) return usage_error(fmt::format("{} is an empty IDX array: dimension {} is 0", name, i + 1));
    if (header.values > kMostValues / dimension)
      return usage_error(fmt::format("{} announces more values than any file holds; its IDX header is damaged", name));
    header.dimensions.push_back(dimension);
    header.values *= dimension;
  }
  return header;
}

std::span<const uint8_t> IdxFile::values() const {
  const auto bytes = file.bytes().subspan(header.bytes());
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

Result<IdxFile> open_idx(const std::string& path) {
  REMUDA_ASSIGN(const Fd fd, open_for_reading(path));
  REMUDA_ASSIGN(MappedFile file, MappedFile::map(fd.get(), path));
  if (is_gzip(file.bytes())) {
    REMUDA_ASSIGN(file, unpack_gzip(file.bytes(), path, [&](std::span<const std::byte> head) -> Result<uint64_t> {
                    REMUDA_ASSIGN(const IdxHeader header, parse_idx_header(head, path));
                    return header.bytes() + header.values;
                  }));
  }
  REMUDA_ASSIGN(IdxHeader header, parse_idx_header(file.bytes(), path));
  const uint64_t expected = header.bytes() + header.values, actual = file.bytes().size();
  if (actual != expected)
    return usage_error(fmt::format("{} is {}: its header announces {} bytes, it has {}", path,
                                   actual < expected ? "truncated" : "too long", expected, actual));
  return IdxFile{std::move(file), std::move(header)};
}

}  // namespace remuda::data
