#include "data/gzip.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <vector>
#include <zlib.h>

namespace remuda::data {
namespace {

constexpr size_t kChunk = 1 << 20;
constexpr int kGzipOnly = 16 + MAX_WBITS;

constexpr uint64_t kMostRatio = 1032;  // of deflate: 258 bytes from 2 bits (https://zlib.net/zlib_tech.html)

/// Content of a gzip file in memory, which may be several gzip streams one after the other (RFC 1952). inflate() takes
/// at most 4 GiB at a time, so the bytes are fed in pieces.
class Inflater {
 public:
  explicit Inflater(std::span<const std::byte> packed) : packed_(packed) {
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  Inflater(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  /// Fills `out` as far as there is content; fewer bytes mean that it has ended. Nothing when the file is broken.
  std::optional<size_t> read(std::span<std::byte> out) {
    if (!ready_) return std::nullopt;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = uInt(out.size());
    while (stream_.avail_out > 0 && !ended_) {
      if (stream_.avail_in == 0 && !feed()) return std::nullopt;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END) return std::nullopt;
      if (status == Z_STREAM_END && inflateReset(&stream_) != Z_OK) return std::nullopt;
      ended_ = status == Z_STREAM_END && exhausted();
    }
    return out.size() - stream_.avail_out;
  }

  /// All packed bytes were read.
  bool exhausted() const { return packed_.empty() && stream_.avail_in == 0; }

 private:
  bool feed() {
    const size_t size = std::min<size_t>(packed_.size(), 1 << 30);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed_.data()));
    stream_.avail_in = uInt(size);
    packed_ = packed_.subspan(size);
    return size > 0;
  }

  std::span<const std::byte> packed_;
  z_stream stream_{};
  bool ready_ = false;
  bool ended_ = false;
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

Result<MappedFile> unpack_gzip(std::span<const std::byte> packed, const std::string& name,
                               const ExpectedSize& expected_size) {
  Inflater inflater(packed);
  REMUDA_ASSIGN(const Fd scratch, scratch_file());
  std::vector<std::byte> chunk(kChunk);
  uint64_t expected = 0, total = 0;
  for (bool first = true;; first = false) {
    const auto got = inflater.read(chunk);
    if (!got)
      return usage_error(fmt::format("{} is a {} gzip file", name, inflater.exhausted() ? "truncated" : "damaged"));
    if (first) {
      REMUDA_ASSIGN(expected, expected_size(std::span(chunk).first(std::min(*got, kHeadBytes))));
      if (expected / kMostRatio > packed.size())
        return usage_error(
            fmt::format("{} is truncated: its header announces {} bytes, more than {} packed bytes can hold", name,
                        expected, packed.size()));
    }
    total += *got;
    if (total > expected)
      return usage_error(fmt::format("{} unpacks to more than the {} bytes its header announces", name, expected));
    REMUDA_TRY(
        write_all(scratch.get(), {reinterpret_cast<const char*>(chunk.data()), *got}, "the scratch file of " + name));
    if (*got < chunk.size()) return MappedFile::map(scratch.get(), name);
  }
}

}  // namespace remuda::data
