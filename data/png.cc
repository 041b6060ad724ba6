#include "data/png.h"

#include <fmt/format.h>
#include <png.h>

#include "base/text.h"
#include "data/luma.h"

namespace remuda::data {
namespace {

/// libpng's reader, which frees what it holds.
struct Reader {
  Reader() { image.version = PNG_IMAGE_VERSION; }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_image_free(&image); }

  Result<void> begin(std::span<const std::byte> file, const std::string& name) {
    if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) return damaged(name);
    image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // 16 bits are the 8 with more digits, and not linear light
    return {};
  }
  tl::unexpected<Error> damaged(const std::string& name) const {
    return usage_error(fmt::format("{} is a damaged PNG file: {}", name, printable(image.message)));
  }

  png_image image{};
};

}  // namespace

Result<PictureSize> png_size(std::span<const std::byte> file, const std::string& name) {
  Reader reader;
  REMUDA_TRY(reader.begin(file, name));
  return PictureSize{int(reader.image.height), int(reader.image.width)};
}

Result<void> decode_png(std::span<const std::byte> file, const std::string& name, PictureSize size, Picture& into) {
  Reader reader;
  REMUDA_TRY(reader.begin(file, name));
  const size_t pixels = size_t(size.height) * size_t(size.width);
  const bool to_grey = into.channels == 1 && (reader.image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  reader.image.format = into.channels == 1 && !to_grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  into.size = size;
  into.values.resize((to_grey ? 3 : size_t(into.channels)) * pixels);
  const png_color white{255, 255, 255};
  if (png_image_finish_read(&reader.image, &white, into.values.data(), 0, nullptr) == 0) return reader.damaged(name);
  if (!to_grey) return {};
  for (size_t i = 0; i < pixels; ++i)
    into.values[i] = luma(into.values[3 * i], into.values[3 * i + 1], into.values[3 * i + 2]);
  into.values.resize(pixels);
  return {};
}

}  // namespace remuda::data
