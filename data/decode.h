// Decoding of pictures: JPEG and PNG files, by libjpeg-turbo and libpng.
//
// They are foreign input: what is wrong with one is an error that names it, and its header alone decides whether it is
// decoded, so that a small file cannot fill the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "data/picture.h"

namespace remuda::data {

/// What Pillow calls a decompression bomb has more (Image.MAX_IMAGE_PIXELS: 2^30 bytes of 3 channels, a quarter of it).
inline constexpr uint64_t kMostPixels = (uint64_t{1} << 30) / 4 / 3;

/// Whether a file of this name is a JPEG or a PNG: .jpg, .jpeg, .png, in any case.
bool is_picture_name(std::string_view name);

/// From the header of a JPEG or PNG file; `name` is for errors.
Result<PictureSize> picture_size(std::span<const std::byte> file, const std::string& name);

/// Decodes to 1 channel (luma) or 3 (red, green, blue). A JPEG file that is much larger than `needed` is decoded at a
/// half, a quarter or an eighth of its size, at no less than `needed` in both directions. Transparent parts of a PNG
/// file are white. A file that ends too early is refused.
Result<void> decode(std::span<const std::byte> file, const std::string& name, int channels, PictureSize needed,
                    Picture& into);

}  // namespace remuda::data
