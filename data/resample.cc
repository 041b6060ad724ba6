#include "data/resample.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace remuda::data {
namespace {

constexpr int kBits = 14;
constexpr int kOne = 1 << kBits;
constexpr int kHalf = kOne / 2;

uint8_t rounded(int sum) { return uint8_t((sum + kHalf) >> kBits); }

}  // namespace

Region middle(PictureSize size, const ImageShape& shape) {
  const double scale = std::min(double(size.height) / shape.height, double(size.width) / shape.width);
  const double height = scale * shape.height, width = scale * shape.width;
  return {(size.height - height) / 2, (size.width - width) / 2, height, width};
}

void Resampler::Axis::set(int pixels, double start, double length, int places) {
  const double scale = length / places, reach = std::max(1.0, scale);
  taps = 2 * int(std::ceil(reach)) + 1;
  first.resize(size_t(places));
  count.resize(size_t(places));
  weights.assign(size_t(places) * size_t(taps), 0);
  for (int place = 0; place < places; ++place) {
    const double centre = start + (place + 0.5) * scale;
    const int from = std::clamp(int(std::floor(centre - reach + 0.5)), 0, pixels - 1);
    const int to = std::clamp(int(std::floor(centre + reach + 0.5)), from + 1, std::min(pixels, from + taps));
    const auto triangle = [&](int pixel) { return std::max(0.0, 1 - std::abs(pixel + 0.5 - centre) / reach); };
    double total = 0;
    for (int pixel = from; pixel < to; ++pixel) total += triangle(pixel);
    int* const weight = weights.data() + size_t(place) * size_t(taps);
    for (int pixel = from; pixel < to; ++pixel) weight[pixel - from] = int(std::lround(triangle(pixel) / total * kOne));
    first[size_t(place)] = from;
    count[size_t(place)] = to - from;
  }
}

/// Resamples one row, channel by channel.
template <int kChannels>
void Resampler::shrink_row(const uint8_t* pixels, int width, uint8_t* out) const {
  for (int x = 0; x < width; ++x) {
    const uint8_t* in = pixels + across_.first[size_t(x)] * kChannels;
    const int* const weight = across_.weights.data() + size_t(x) * size_t(across_.taps);
    std::array<int, kChannels> sums{};
    for (int tap = 0; tap < across_.count[size_t(x)]; ++tap, in += kChannels)
      for (int channel = 0; channel < kChannels; ++channel) sums[size_t(channel)] += weight[tap] * in[channel];
    for (int channel = 0; channel < kChannels; ++channel) out[channel * width + x] = rounded(sums[size_t(channel)]);
  }
}

/// Resamples the rows that down_ names.
void Resampler::shrink_rows(const Picture& picture, int width) {
  const auto channels = size_t(picture.channels), row_bytes = size_t(picture.size.width) * channels;
  first_row_ = down_.first.front();
  const auto rows = size_t(down_.first.back() + down_.count.back() - first_row_);
  rows_.resize(rows * channels * size_t(width));
  for (size_t row = 0; row < rows; ++row) {
    const uint8_t* const pixels = picture.values.data() + (size_t(first_row_) + row) * row_bytes;
    uint8_t* const out = rows_.data() + row * channels * size_t(width);
    channels == 1 ? shrink_row<1>(pixels, width, out) : shrink_row<3>(pixels, width, out);
  }
}

void Resampler::operator()(const Picture& picture, const Region& region, const ImageShape& shape,
                           std::span<uint8_t> values) {
  REMUDA_CHECK(picture.channels == shape.channels && values.size() == shape.bytes(), "the result has the asked shape");
  REMUDA_CHECK(picture.channels == 1 || picture.channels == 3, "a picture has luma, or three colours");
  across_.set(picture.size.width, region.left, region.width, shape.width);
  down_.set(picture.size.height, region.top, region.height, shape.height);
  shrink_rows(picture, shape.width);
  const auto width = size_t(shape.width);
  sums_.resize(width);
  uint8_t* out = values.data();
  for (int channel = 0; channel < shape.channels; ++channel)
    for (int y = 0; y < shape.height; ++y) {
      std::ranges::fill(sums_, 0);
      const int* const weights = down_.weights.data() + size_t(y) * size_t(down_.taps);
      for (int tap = 0; tap < down_.count[size_t(y)]; ++tap) {
        const auto row = size_t(down_.first[size_t(y)] - first_row_ + tap);
        const uint8_t* const in = rows_.data() + (row * size_t(shape.channels) + size_t(channel)) * width;
        for (size_t x = 0; x < width; ++x) sums_[x] += weights[tap] * in[x];
      }
      for (size_t x = 0; x < width; ++x) *out++ = rounded(sums_[x]);
    }
}

}  // namespace remuda::data
