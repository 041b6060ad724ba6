#include "data/view.h"

#include <algorithm>
#include <fmt/format.h>

#include "data/mix.h"

namespace remuda::data {
namespace {

/// One row of a channel, moved to the right by `right` and mirrored after that.
void write_row(const uint8_t* row, int width, const View& view, const float* values, float* into) {
  const int begin = std::clamp(view.right, 0, width), end = std::clamp(width + view.right, 0, width);
  std::fill(into, into + begin, values[0]);
  for (int x = begin; x < end; ++x) into[x] = values[row[x - view.right]];
  std::fill(into + end, into + width, values[0]);
  if (view.mirrored) std::reverse(into, into + width);
}

}  // namespace

Result<void> check_transform(const ImageTransform& transform, const ImageShape& shape) {
  const size_t mean = transform.mean.size(), deviation = transform.deviation.size(), channels = size_t(shape.channels);
  if ((mean == 0 && deviation == 0) || (mean == channels && deviation == channels)) return {};
  return usage_error(
      fmt::format("data.mean and data.std must have a number for each channel; the images have {}, and they {} and {}",
                  channels, mean, deviation));
}

View view_of(const ImageTransform& transform, uint64_t epoch, uint64_t index) {
  if (epoch == 0) return {};
  uint64_t state = mix(mix(mix(transform.seed) ^ epoch) ^ index);
  const auto draw = [&](uint64_t below) { return (state = mix(state)) % below; };
  View view{.mirrored = draw(2) == 1 && transform.flip};
  const auto steps = uint64_t(2 * transform.crop + 1);
  view.down = int(draw(steps)) - transform.crop;
  view.right = int(draw(steps)) - transform.crop;
  return view;
}

ValueTable::ValueTable(const ImageTransform& transform, int channels) {
  for (int channel = 0; channel < channels; ++channel)
    for (int value = 0; value < 256; ++value)
      values_.push_back(transform.mean.empty() ? static_cast<float>(value) / 127.5f - 1.0f
                                               : static_cast<float>((value / 255.0 - transform.mean[size_t(channel)]) /
                                                                    transform.deviation[size_t(channel)]));
}

void write_view(std::span<const uint8_t> image, const ImageShape& shape, const View& view, const ValueTable& table,
                std::span<float> into) {
  const auto width = size_t(shape.width), plane = size_t(shape.height) * width;
  for (int channel = 0; channel < shape.channels; ++channel)
    for (int y = 0; y < shape.height; ++y) {
      float* const out = into.data() + size_t(channel) * plane + size_t(y) * width;
      const int from = y - view.down;
      if (from < 0 || from >= shape.height)
        std::fill(out, out + width, table.of(channel)[0]);
      else
        write_row(image.data() + size_t(channel) * plane + size_t(from) * width, shape.width, view, table.of(channel),
                  out);
    }
}

}  // namespace remuda::data
