#include "train/model/norm_moments.h"

#include <algorithm>

#include "base/check.h"

namespace remuda::train {

void combine_moments(std::span<const double> parts, std::span<double> all) {
  REMUDA_CHECK(all.size() % 2 == 1 && parts.size() % all.size() == 0, "moments are of the same channels");
  std::ranges::fill(all, 0.0);
  const size_t channels = all.size() / 2;
  for (; !parts.empty(); parts = parts.subspan(all.size())) {
    const double before = all[0], added = parts[0], count = before + added;
    if (added == 0) continue;
    for (size_t channel = 1; channel <= channels; ++channel) {
      const double difference = parts[channel] - all[channel];
      all[channel] += difference * added / count;
      all[channel + channels] += parts[channel + channels] + difference * difference * before * added / count;
    }
    all[0] = count;
  }
}

}  // namespace remuda::train
