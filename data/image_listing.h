// Image listing: the JPEG and PNG files of a folder or a tar archive, and the class of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace remuda::data {

struct ListedImage {
  std::string name;  ///< below the folder, or in the archive
  int label = 0;
  uint64_t offset = 0, bytes = 0;  ///< in an archive: where its file lies
};

struct ImageListing {
  std::vector<std::string> classes;  ///< in the order of their bytes, as their labels are
  std::vector<ListedImage> images;   ///< in the order of their names
};

/// Each class is a folder of its own, with its images in it or in folders below it; other files are of no matter, but
/// images of other formats are refused.
Result<ImageListing> list_image_folder(const std::string& path);

/// The same of an open archive; folders that all images have in common are passed over. Links in it are refused.
Result<ImageListing> list_image_archive(int fd, const std::string& path);

}  // namespace remuda::data
