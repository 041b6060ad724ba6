// ImageFiles: labelled images from JPEG and PNG files, in a folder or a tar archive, a folder for each class.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "data/image_listing.h"
#include "data/images.h"
#include "data/picture.h"

namespace remuda::data {

/// What images are brought to.
struct ImageFormat {
  int channels = 3;  ///< 1 (luma) or 3 (red, green, blue)
  int size = 0;      ///< height and width; 0: those of the first image, which all must have
};

class ImageFiles final : public Images {
 public:
  /// Lists the files and reads the size of the first one. An image is decoded when it is read: it is shrunk or enlarged
  /// until it covers the shape, and what stands out is cut off evenly on both sides.
  static Result<ImageFiles> open(const std::string& path, const ImageFormat& format);

  size_t size() const override { return listing_.images.size(); }
  const ImageShape& shape() const override { return shape_; }
  int classes() const override { return int(listing_.classes.size()); }
  const std::vector<std::string>& class_names() const { return listing_.classes; }
  int label(size_t index) const override { return listing_.images[index].label; }
  Result<void> read(size_t index, std::span<uint8_t> values) const override;
  /// Of the image as it lies in its file.
  Result<PictureSize> size_of(size_t index) const;

 private:
  Result<void> read_file(const ListedImage& image, std::vector<std::byte>& into) const;
  std::string name_of(const ListedImage& image) const;

  std::string path_;
  Fd archive_;  ///< none for a folder
  ImageListing listing_;
  ImageShape shape_;
  bool resized_ = false;
};

}  // namespace remuda::data
