#include "data/testing/files.h"

#include <zlib.h>

#include "base/check.h"

namespace remuda::data {

std::string idx_header(const std::vector<uint32_t>& dimensions) {
  std::string bytes{0, 0, 8, static_cast<char>(dimensions.size())};
  for (const uint32_t dimension : dimensions)
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(dimension >> shift);
  return bytes;
}

std::string idx(const std::vector<uint32_t>& dimensions, size_t count, int modulus) {
  std::string bytes = idx_header(dimensions);
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(i % modulus);
  return bytes;
}

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  REMUDA_CHECK(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) == Z_OK, "zlib works");
  std::string packed(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REMUDA_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib works");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string token_bytes(const std::vector<int>& tokens) {
  std::string bytes;
  for (const int token : tokens) bytes += {static_cast<char>(token), static_cast<char>(token >> 8)};
  return bytes;
}

}  // namespace remuda::data
