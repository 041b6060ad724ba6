// Resample: a part of a picture brought to the shape that a model takes.
#pragma once

#include <span>
#include <vector>

#include "data/images.h"
#include "data/picture.h"

namespace remuda::data {

/// A part of a picture, in its pixels; it may begin and end between two.
struct Region {
  double top = 0, left = 0, height = 0, width = 0;
};

/// The largest part in the middle of a picture that has the proportions of `shape`.
Region middle(PictureSize size, const ImageShape& shape);

/// Writes a region of `picture` as `shape`, channel by channel. Each value is the mean of the pixels around its place,
/// weighted by a triangle as wide as two pixels of the coarser of both grids (Pillow's BILINEAR). In integers, so that
/// every machine has the same bits. Keeps its memory from one picture to the next.
class Resampler {
 public:
  void operator()(const Picture& picture, const Region& region, const ImageShape& shape, std::span<uint8_t> values);

 private:
  /// For each place along one direction of the result: which pixels it is made of, and the weight of each.
  struct Axis {
    void set(int pixels, double start, double length, int places);
    int taps = 0;                   ///< at most, of one place
    std::vector<int> first, count;  ///< pixels of each place
    std::vector<int> weights;       ///< `taps` for each place, in parts of 2^14
  };
  template <int kChannels>
  void shrink_row(const uint8_t* pixels, int width, uint8_t* out) const;
  void shrink_rows(const Picture& picture, int width);

  Axis across_, down_;
  int first_row_ = 0;
  std::vector<uint8_t> rows_;  ///< the rows needed, resampled across: row by row, channel by channel
  std::vector<int> sums_;
};

}  // namespace remuda::data
