// Tests and benches only: JPEG and PNG files of pixels, and tar archives.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/picture.h"

namespace remuda::data {

std::string jpeg_file(const Picture& picture, int quality = 95);
/// `channels` of the file: 1 to 4; those of the picture.
std::string png_file(const Picture& picture);

/// A picture whose every pixel is this colour.
Picture plain(PictureSize size, std::vector<uint8_t> colour);
/// A smooth picture of three colours that is not the same upside down, mirrored, or for another `kind`.
Picture slopes(PictureSize size, int kind = 0);

/// A header and the content, padded: `type` '0' is a file, '2' a symbolic link, '5' a folder.
std::string tar_member(std::string_view name, std::string_view content, char type = '0');
/// The members and two blocks of zeros.
std::string tar_file(const std::map<std::string, std::string>& members);

/// The bytes of a text as a decoder takes them.
std::span<const std::byte> bytes_of(std::string_view text);

}  // namespace remuda::data
