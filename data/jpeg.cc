#include "data/jpeg.h"

#include <fmt/format.h>
#include <memory>
#include <turbojpeg.h>

#include "base/check.h"
#include "base/text.h"
#include "data/luma.h"

namespace remuda::data {
namespace {

struct Destroy {
  void operator()(void* decoder) const { tjDestroy(decoder); }
};
using Decoder = std::unique_ptr<void, Destroy>;

Decoder new_decoder() {
  Decoder decoder(tjInitDecompress());
  REMUDA_CHECK(decoder, "there is memory for a decoder");
  return decoder;
}

const uint8_t* bytes_of(std::span<const std::byte> file) { return reinterpret_cast<const uint8_t*>(file.data()); }

struct Header {
  PictureSize size;
  int colours = -1;
};

/// TurboJPEG also reports rare subsamplings as an error here, which it can decode; then all is known but their name.
Result<Header> read_header(const Decoder& decoder, std::span<const std::byte> file, const std::string& name) {
  Header header;
  int subsampling = -1;
  tjDecompressHeader3(decoder.get(), bytes_of(file), file.size(), &header.size.width, &header.size.height, &subsampling,
                      &header.colours);
  if (header.size.width < 1 || header.size.height < 1)
    return usage_error(fmt::format("{} is a damaged JPEG file: {}", name, printable(tjGetErrorStr2(decoder.get()))));
  return header;
}

/// Warnings are for what every viewer forgives, but not for a missing end: the rest of the picture would be grey.
bool is_fatal(const Decoder& decoder) {
  const std::string_view text = tjGetErrorStr2(decoder.get());
  return tjGetErrorCode(decoder.get()) == TJERR_FATAL || text.find("Premature end") != text.npos;
}

/// CMYK files hold the complements, as Adobe's programs write them.
void cmyk_to(int channels, const std::vector<uint8_t>& from, std::vector<uint8_t>& to) {
  const size_t pixels = from.size() / 4;
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* p = from.data() + 4 * i;
    const auto colour = [&](int c) { return uint8_t(p[c] * p[3] / 255); };
    if (channels == 1)
      to[i] = luma(colour(0), colour(1), colour(2));
    else
      for (int c = 0; c < 3; ++c) to[3 * i + size_t(c)] = colour(c);
  }
}

}  // namespace

Result<PictureSize> jpeg_size(std::span<const std::byte> file, const std::string& name) {
  REMUDA_ASSIGN(const Header header, read_header(new_decoder(), file, name));
  return header.size;
}

PictureSize jpeg_scaled(PictureSize size, PictureSize needed) {
  for (const int denominator : {8, 4, 2}) {
    const tjscalingfactor factor{1, denominator};
    const PictureSize scaled{TJSCALED(size.height, factor), TJSCALED(size.width, factor)};
    if (scaled.height >= needed.height && scaled.width >= needed.width) return scaled;
  }
  return size;
}

Result<void> decode_jpeg(std::span<const std::byte> file, const std::string& name, PictureSize scaled, Picture& into) {
  const Decoder decoder = new_decoder();
  REMUDA_ASSIGN(const Header header, read_header(decoder, file, name));
  const bool cmyk = header.colours == TJCS_CMYK || header.colours == TJCS_YCCK;
  const int format = cmyk ? TJPF_CMYK : into.channels == 1 ? TJPF_GRAY : TJPF_RGB;
  const size_t pixels = size_t(scaled.height) * size_t(scaled.width);
  std::vector<uint8_t> inks(cmyk ? 4 * pixels : 0);
  into.size = scaled;
  into.values.resize(size_t(into.channels) * pixels);
  // ACCURATEDCT: bits that every processor has in common. LIMITSCANS: a file of a few kB may have thousands of scans.
  const int status = tjDecompress2(decoder.get(), bytes_of(file), file.size(), cmyk ? inks.data() : into.values.data(),
                                   scaled.width, 0, scaled.height, format, TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS);
  if (status != 0 && is_fatal(decoder))
    return usage_error(fmt::format("{} is a damaged JPEG file: {}", name, printable(tjGetErrorStr2(decoder.get()))));
  if (cmyk) cmyk_to(into.channels, inks, into.values);
  return {};
}

}  // namespace remuda::data
