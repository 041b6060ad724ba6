// Any bytes are a picture of the size that its header announces, or a usage error of one line that names it. jpeg_fuzz
// and png_fuzz are this program with pictures of their kind in testdata/fuzz to begin with.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "data/decode.h"
#include "data/resample.h"

namespace {

namespace data = remuda::data;

void expect_error_of_file(const remuda::Error& error) {
  REMUDA_CHECK(error.kind == remuda::ErrorKind::usage, "a wrong file is the user's error");
  REMUDA_CHECK(error.message.find('\n') == std::string::npos, "an error is one line");
  REMUDA_CHECK(error.message.starts_with("cat/1.jpg "), "an error names the file");
}

void decode_at(std::span<const std::byte> file, int channels, data::PictureSize needed) {
  data::Picture picture;
  if (const auto done = data::decode(file, "cat/1.jpg", channels, needed, picture); !done)
    return expect_error_of_file(done.error());
  const size_t pixels = size_t(picture.size.height) * size_t(picture.size.width);
  REMUDA_CHECK(picture.values.size() == pixels * size_t(channels), "a picture has all its pixels");
  const data::ImageShape shape{channels, needed.height, needed.width};
  std::vector<uint8_t> values(shape.bytes());
  data::Resampler()(picture, data::middle(picture.size, shape), shape, values);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  constexpr int kMostPixelsHere = 1 << 18;  // larger ones show nothing new, and take long
  const auto file = std::as_bytes(std::span(bytes, size));
  const auto announced = data::picture_size(file, "cat/1.jpg");
  if (!announced) {
    expect_error_of_file(announced.error());
    return 0;
  }
  if (int64_t(announced->height) * announced->width > kMostPixelsHere) return 0;
  decode_at(file, 3, {7, 9});
  decode_at(file, 1, *announced);
  return 0;
}
