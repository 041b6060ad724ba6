#include "data/decode.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/check.h"
#include "base/letter_case.h"
#include "data/jpeg.h"
#include "data/png.h"

namespace remuda::data {
namespace {

bool begins_with(std::span<const std::byte> file, std::string_view magic) {
  return std::string_view(reinterpret_cast<const char*>(file.data()), file.size()).starts_with(magic);
}

bool is_jpeg(std::span<const std::byte> file) { return begins_with(file, "\xff\xd8\xff"); }
bool is_png(std::span<const std::byte> file) { return begins_with(file, "\x89PNG\r\n\x1a\n"); }

}  // namespace

bool is_picture_name(std::string_view name) {
  const std::string ending = lower(name.substr(std::min(name.rfind('.'), name.size())));
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

Result<PictureSize> picture_size(std::span<const std::byte> file, const std::string& name) {
  if (!is_jpeg(file) && !is_png(file)) return usage_error(fmt::format("{} is neither a JPEG nor a PNG file", name));
  REMUDA_ASSIGN(const PictureSize size, is_jpeg(file) ? jpeg_size(file, name) : png_size(file, name));
  if (uint64_t(size.height) * uint64_t(size.width) > kMostPixels)
    return usage_error(
        fmt::format("{} announces {} x {} pixels; at most {} are decoded", name, size.width, size.height, kMostPixels));
  return size;
}

Result<void> decode(std::span<const std::byte> file, const std::string& name, int channels, PictureSize needed,
                    Picture& into) {
  REMUDA_CHECK(channels == 1 || channels == 3, "a picture has luma, or three colours");
  REMUDA_ASSIGN(const PictureSize size, picture_size(file, name));
  into.channels = channels;
  return is_jpeg(file) ? decode_jpeg(file, name, jpeg_scaled(size, needed), into) : decode_png(file, name, size, into);
}

}  // namespace remuda::data
