#include "data/image_set.h"

#include <algorithm>
#include <fmt/format.h>

#include "data/idx.h"

namespace remuda::data {
namespace {

constexpr uint32_t kMostSide = 1 << 14;

Result<ImageShape> shape_of(const IdxHeader& header, const std::string& images) {
  const auto& d = header.dimensions;
  if (d.size() == 1)
    return usage_error(
        fmt::format("{} holds labels (1 dimension), not images; are images and labels swapped?", images));
  if (d.size() == 2) return usage_error(fmt::format("{} has 2 dimensions; images have 3 or 4", images));
  if (*std::max_element(d.begin() + 1, d.end()) > kMostSide)
    return usage_error(fmt::format("{} holds images of more than {} pixels a side", images, kMostSide));
  const bool channels = d.size() == 4;
  return ImageShape{channels ? int(d[1]) : 1, int(d[d.size() - 2]), int(d.back())};
}

}  // namespace

Result<ImageSet> ImageSet::open(const std::string& images, const std::string& labels) {
  REMUDA_ASSIGN(IdxFile image_file, open_idx(images));
  REMUDA_ASSIGN(IdxFile label_file, open_idx(labels));
  ImageSet set;
  REMUDA_ASSIGN(set.shape_, shape_of(image_file.header, images));
  if (label_file.header.dimensions.size() != 1)
    return usage_error(fmt::format("{} has {} dimensions; labels have 1", labels, label_file.header.dimensions.size()));
  if (image_file.header.dimensions[0] != label_file.header.dimensions[0])
    return usage_error(fmt::format("{} holds {} images, {} holds {} labels; there must be one for each", images,
                                   image_file.header.dimensions[0], labels, label_file.header.dimensions[0]));
  set.pixels_ = image_file.values();
  set.labels_ = label_file.values();
  set.image_file_ = std::move(image_file.file);
  set.label_file_ = std::move(label_file.file);
  set.classes_ = *std::max_element(set.labels_.begin(), set.labels_.end()) + 1;
  return set;
}

Result<void> ImageSet::read(size_t index, std::span<uint8_t> values) const {
  std::ranges::copy(pixels(index), values.begin());
  return {};
}

}  // namespace remuda::data
