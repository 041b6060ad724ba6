#include "data/image_files.h"

#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "data/decode.h"
#include "data/resample.h"

namespace remuda::data {
namespace {

constexpr uint64_t kMostFileBytes = 256 << 20;  ///< kMostPixels of 3 channels, as they are

/// What a thread reads with; it keeps its memory from one image to the next.
struct Scratch {
  std::vector<std::byte> file;
  Picture picture;
  Resampler resample;
};

Scratch& scratch() {
  static thread_local Scratch mine;
  return mine;
}

Result<void> read_whole(int fd, uint64_t offset, uint64_t bytes, const std::string& name,
                        std::vector<std::byte>& into) {
  if (bytes > kMostFileBytes)
    return usage_error(fmt::format("{} has {}; images of at most {} are read", name, human_bytes(double(bytes)),
                                   human_bytes(double(kMostFileBytes))));
  into.resize(bytes);
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = ::pread(fd, into.data() + done, bytes - done, off_t(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(fmt::format("cannot read {}: {}", name, errno_text(errno)));
    if (got == 0) return failed(fmt::format("cannot read {}: it became shorter", name));
    done += size_t(got);
  }
  return {};
}

}  // namespace

Result<ImageFiles> ImageFiles::open(const std::string& path, const ImageFormat& format) {
  ImageFiles set;
  set.path_ = path;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    REMUDA_ASSIGN(set.listing_, list_image_folder(path));
  } else {
    REMUDA_ASSIGN(set.archive_, open_for_reading(path));
    REMUDA_ASSIGN(set.listing_, list_image_archive(set.archive_.get(), path));
  }
  set.shape_ = {format.channels, format.size, format.size};
  set.resized_ = format.size > 0;
  if (set.resized_) return set;
  REMUDA_ASSIGN(const PictureSize size, set.size_of(0));
  set.shape_ = {format.channels, size.height, size.width};
  return set;
}

Result<PictureSize> ImageFiles::size_of(size_t index) const {
  const ListedImage& image = listing_.images[index];
  REMUDA_TRY(read_file(image, scratch().file));
  return picture_size(scratch().file, name_of(image));
}

std::string ImageFiles::name_of(const ListedImage& image) const {
  return printable(archive_ ? fmt::format("{} in {}", image.name, path_)
                            : (std::filesystem::path(path_) / image.name).string());
}

Result<void> ImageFiles::read_file(const ListedImage& image, std::vector<std::byte>& into) const {
  if (archive_) return read_whole(archive_.get(), image.offset, image.bytes, name_of(image), into);
  const std::string path = (std::filesystem::path(path_) / image.name).string();
  REMUDA_ASSIGN(const Fd fd, open_for_reading(path));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return failed(fmt::format("cannot read {}: {}", path, errno_text(errno)));
  return read_whole(fd.get(), 0, uint64_t(status.st_size), path, into);
}

Result<void> ImageFiles::read(size_t index, std::span<uint8_t> values) const {
  REMUDA_CHECK(values.size() == shape_.bytes(), "there is room for one image");
  const ListedImage& image = listing_.images[index];
  auto& [file, picture, resample] = scratch();
  REMUDA_TRY(read_file(image, file));
  const PictureSize needed{shape_.height, shape_.width};
  REMUDA_TRY(decode(file, name_of(image), shape_.channels, needed, picture));
  if (!resized_ && picture.size != needed)
    return usage_error(
        fmt::format("{} has {} x {} pixels, but the first image has {} x {}; data.size brings all to one",
                    name_of(image), picture.size.width, picture.size.height, needed.width, needed.height));
  resample(picture, middle(picture.size, shape_), shape_, values);
  return {};
}

}  // namespace remuda::data
