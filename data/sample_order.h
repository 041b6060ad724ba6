// SampleOrder: the samples of a whole run, one after the other, epoch by epoch.
#pragma once

#include <cstdint>

#include "data/shuffle.h"

namespace remuda::data {

class SampleOrder {
 public:
  struct Place {
    uint64_t epoch = 0, index = 0;
    bool operator==(const Place&) const = default;
  };

  /// Epochs 1, 2, 3, ..., each in an order of its own (Shuffle).
  static SampleOrder shuffled(uint64_t size, uint64_t seed) { return SampleOrder(size, seed, Kind::shuffled); }
  /// Epochs 1, 2, 3, ..., each 0, 1, 2, ...
  static SampleOrder in_order(uint64_t size) { return SampleOrder(size, 0, Kind::in_order); }
  /// 0, 1, 2, ... again and again, all of epoch 0: to test with.
  static SampleOrder as_they_are(uint64_t size) { return SampleOrder(size, 0, Kind::as_they_are); }

  /// The sample at a position of the run.
  Place operator[](uint64_t position) const {
    const uint64_t epoch = 1 + position / size_, place = position % size_;
    if (kind_ == Kind::shuffled) return {epoch, Shuffle(size_, seed_, epoch)[place]};
    return {kind_ == Kind::in_order ? epoch : 0, place};
  }

 private:
  enum class Kind : uint8_t { shuffled, in_order, as_they_are };
  SampleOrder(uint64_t size, uint64_t seed, Kind kind) : size_(size), seed_(seed), kind_(kind) {}
  uint64_t size_, seed_;
  Kind kind_;
};

}  // namespace remuda::data
