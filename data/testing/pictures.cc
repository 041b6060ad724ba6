#include "data/testing/pictures.h"

#include <fmt/format.h>
#include <numeric>
#include <png.h>
#include <turbojpeg.h>

#include "base/check.h"

namespace remuda::data {

std::string jpeg_file(const Picture& picture, int quality) {
  tjhandle encoder = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool grey = picture.channels == 1, cmyk = picture.channels == 4;
  const int status = tjCompress2(encoder, picture.values.data(), picture.size.width, 0, picture.size.height,
                                 grey   ? TJPF_GRAY
                                 : cmyk ? TJPF_CMYK
                                        : TJPF_RGB,
                                 &bytes, &size, grey ? TJSAMP_GRAY : TJSAMP_444, quality, 0);
  REMUDA_CHECK(status == 0, "a picture can be encoded");
  std::string file(reinterpret_cast<const char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(encoder);
  return file;
}

std::string png_file(const Picture& picture) {
  constexpr png_uint_32 kFormats[]{PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = png_uint_32(picture.size.width);
  image.height = png_uint_32(picture.size.height);
  image.format = kFormats[picture.channels - 1];
  png_alloc_size_t size = 0;
  const void* values = picture.values.data();
  REMUDA_CHECK(png_image_write_get_memory_size(image, size, 0, values, 0, nullptr), "a picture can be encoded");
  std::string file(size, '\0');
  REMUDA_CHECK(png_image_write_to_memory(&image, file.data(), &size, 0, values, 0, nullptr), "there is room for it");
  file.resize(size);
  return file;
}

Picture plain(PictureSize size, std::vector<uint8_t> colour) {
  Picture picture{int(colour.size()), size, {}};
  for (int i = 0; i < size.height * size.width; ++i)
    picture.values.insert(picture.values.end(), colour.begin(), colour.end());
  return picture;
}

Picture slopes(PictureSize size, int kind) {
  Picture picture{3, size, {}};
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x)
      for (const int value : {x * 255 / size.width, y * 255 / size.height, (40 + 60 * kind) % 256})
        picture.values.push_back(uint8_t(value));
  return picture;
}

std::string tar_member(std::string_view name, std::string_view content, char type) {
  std::string header(512, '\0');
  const auto put = [&](size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, fmt::format("{:011o}", content.size()));
  put(148, "        ");
  header[156] = type;
  put(257, std::string_view("ustar\00000", 8));
  const int sum = std::accumulate(header.begin(), header.end(), 0, [](int all, char c) { return all + uint8_t(c); });
  put(148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  return header + std::string(content) + std::string((512 - content.size() % 512) % 512, '\0');
}

std::string tar_file(const std::map<std::string, std::string>& members) {
  std::string bytes;
  for (const auto& [name, content] : members) bytes += tar_member(name, content);
  return bytes + std::string(1024, '\0');
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace remuda::data
