// PNG files by libpng's simplified interface, whose errors are return values. Internal to data: see decode.h.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "data/picture.h"

namespace remuda::data {

Result<PictureSize> png_size(std::span<const std::byte> file, const std::string& name);

/// Decodes to `into.channels`. `size` is what png_size() gives.
Result<void> decode_png(std::span<const std::byte> file, const std::string& name, PictureSize size, Picture& into);

}  // namespace remuda::data
