#include "data/dataset.h"

#include <algorithm>
#include <vector>

namespace remuda::data {
namespace {

template <typename T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

Result<void> ImageSamples::write(uint64_t index, uint64_t epoch, std::span<std::byte> input,
                                 std::span<std::byte> target) const {
  static thread_local std::vector<uint8_t> image;  // keeps its memory from one sample to the next
  image.resize(images_->shape().bytes());
  REMUDA_TRY(images_->read(index, image));
  write_view(image, images_->shape(), view_of(transform_, epoch, index), values_, as<float>(input));
  as<int64_t>(target)[0] = images_->label(index);
  return {};
}

Result<void> TokenSamples::write(uint64_t index, uint64_t, std::span<std::byte> input,
                                 std::span<std::byte> target) const {
  const auto window = tokens_.window(index);
  std::ranges::copy(window.first(context_), as<int64_t>(input).begin());
  std::ranges::copy(window.last(context_), as<int64_t>(target).begin());
  return {};
}

}  // namespace remuda::data
