// JPEG files by libjpeg-turbo's TurboJPEG interface, whose errors are return values. Internal to data: see decode.h.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "data/picture.h"

namespace remuda::data {

Result<PictureSize> jpeg_size(std::span<const std::byte> file, const std::string& name);

/// `size`, or the smallest of its half, quarter and eighth that is still `needed` high and wide.
PictureSize jpeg_scaled(PictureSize size, PictureSize needed);

/// Decodes to `into.channels` and `scaled`, one of the sizes that jpeg_scaled() gives.
Result<void> decode_jpeg(std::span<const std::byte> file, const std::string& name, PictureSize scaled, Picture& into);

}  // namespace remuda::data
