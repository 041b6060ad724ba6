#include "compress/trial.h"

#include <algorithm>
#include <functional>
#include <new>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "compress/frozen_adam.h"
#include "compress/low_rank_sum.h"
#include "compress/one_bit_sum.h"
#include "compress/portable.h"
#include "compress/signs.h"

namespace remuda::compress {
namespace {

/// What is added up to see how fast hosts exchange: as much as a bucket has, but over a very slow link.
constexpr size_t kBytes = 4 << 20, kSlowBytes = 256 << 10, kFewBytes = 64;
constexpr double kSlow_s = 0.05;
constexpr int kRepeats = 5;
/// Of packed values, in one exchange of the trial.
constexpr double kLongest_s = 0.25;
constexpr size_t kLeastValues = 1 << 16;

/// Collective. The median of a few.
Result<double> median_s(const std::function<Result<void>()>& act) {
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) {
    const double start = monotonic_s();
    REMUDA_TRY(act());
    seconds.push_back(monotonic_s() - start);
  }
  std::ranges::nth_element(seconds, seconds.begin() + kRepeats / 2);
  return seconds[kRepeats / 2];
}

template <typename T>
Result<void> as_the_first(comm::Communicator& hosts, T& value, uint32_t label) {
  return hosts.broadcast(std::as_writable_bytes(std::span(&value, 1)), 0, label);
}

Result<void> measure_rate(comm::Communicator& hosts, Trial& trial, uint32_t label) {
  REMUDA_ASSIGN(const std::span<std::byte> room, hosts.allocate(kBytes));
  const auto seconds_of = [&](size_t bytes) {
    return median_s(
        [&, bytes] { return hosts.all_reduce(comm::Values(comm::Element::float32, room.first(bytes)), label); });
  };
  REMUDA_ASSIGN(trial.latency_s, seconds_of(kFewBytes));
  REMUDA_ASSIGN(double seconds, seconds_of(kSlowBytes));
  REMUDA_TRY(as_the_first(hosts, seconds, label));
  const bool is_slow = seconds > kSlow_s;
  if (!is_slow) {
    REMUDA_ASSIGN(seconds, seconds_of(kBytes));
  }
  trial.seconds_per_byte = std::max(1e-12, (seconds - trial.latency_s) / double(is_slow ? kSlowBytes : kBytes));
  return as_the_first(hosts, trial, label);
}

size_t values_of(std::span<const Shape> shapes) {
  size_t sum = 0;
  for (const Shape& shape : shapes) sum += shape.count();
  return sum;
}

double low_rank_bytes(std::span<const Shape> shapes, size_t rank) {
  size_t sum = 0;
  for (const Shape& shape : shapes) sum += sent_values(shape, rank);
  return 4 * double(sum);
}

/// The first ones, and of the last of them the first rows.
std::vector<Shape> no_more_than(std::span<const Shape> shapes, size_t values) {
  std::vector<Shape> some;
  for (const Shape& shape : shapes) {
    if (shape.count() == 0) continue;
    const size_t rows = std::min(shape.rows, std::max<size_t>(1, values / shape.columns));
    some.push_back({rows, shape.columns});
    values -= std::min(values, some.back().count());
    if (values == 0) break;
  }
  return some;
}

/// Values that are packed so that sending `bytes_of_all` of all of them would take no longer than is allowed.
size_t values_to_try(const Trial& trial, const TrialOptions& options, double bytes_of_all) {
  const size_t all = values_of(options.shapes);
  const double sending_s = bytes_of_all * trial.seconds_per_byte;
  const double part = sending_s > kLongest_s ? kLongest_s / sending_s : 1;
  return std::min({all, options.most_values, std::max(kLeastValues, size_t(part * double(all)))});
}

/// Gradients, and what a step of an optimizer reads and writes.
struct Vectors {
  explicit Vectors(size_t count) : values(count), mean(count), square(count), gradient(count) {
    for (size_t i = 0; i < count; ++i) gradient[i] = 1e-3F * float(int(i % 97) - 48);
  }
  std::vector<float> values, mean, square, gradient;
};

/// Each host looks at all of its gradients, where before it looked at the sums that it owns.
void see_whether_finite(const std::vector<float>& gradient) {
  REMUDA_CHECK(dot(gradient, gradient) >= 0, "of squares");
}

/// Collective.
Result<double> try_powersgd(comm::Communicator& hosts, const Trial& trial, const TrialOptions& options,
                            uint32_t label) {
  const double bytes = low_rank_bytes(options.shapes, options.rank);
  const std::vector<Shape> shapes = no_more_than(options.shapes, values_to_try(trial, options, bytes));
  const size_t count = values_of(shapes);
  Vectors vectors(count);
  REMUDA_ASSIGN(LowRankSum sum, LowRankSum::create(hosts, in_a_row(shapes), count, options.rank));
  REMUDA_ASSIGN(const double seconds, median_s([&]() -> Result<void> {
                  see_whether_finite(vectors.gradient);
                  REMUDA_TRY(sum.add_up(vectors.gradient, 1, label));
                  descend(AdamStep{.epsilon = 1}, vectors.values, vectors.mean, vectors.square, vectors.gradient);
                  return {};
                }));
  const double packing_s = std::max(0.0, seconds - trial.sending_s(low_rank_bytes(shapes, options.rank), 2));
  return packing_s * double(values_of(options.shapes)) / double(count) + trial.sending_s(bytes, 2);
}

/// Collective.
Result<double> try_one_bit(comm::Communicator& hosts, const Trial& trial, const TrialOptions& options, uint32_t label) {
  const size_t all = values_of(options.shapes);
  const size_t count = values_to_try(trial, options, double(packed_bytes(all)));
  Vectors vectors(count);
  std::vector<float>&direction = vectors.mean, &used = vectors.square;
  std::ranges::fill(used, 1.0F);
  REMUDA_ASSIGN(OneBitSum sum, OneBitSum::create(hosts, count));
  const auto add = [&](comm::Chunk range, std::span<float> to) {
    const auto part = [&](std::vector<float>& whole) { return std::span(whole).subspan(range.begin, range.size()); };
    add_step(to, 0.45F, part(direction), 0.05F, part(vectors.gradient), part(used));
  };
  REMUDA_ASSIGN(const double seconds, median_s([&]() -> Result<void> {
                  see_whether_finite(vectors.gradient);
                  REMUDA_ASSIGN(const std::span<const std::byte> packed, sum.add_up(add, used, label));
                  unpack(packed, used, direction);
                  descend(vectors.values, 1, 0, direction);
                  return {};
                }));
  const double packing_s = std::max(0.0, seconds - trial.sending_s(double(packed_bytes(count)), 2));
  return packing_s * double(all) / double(count) + trial.sending_s(double(packed_bytes(all)), 2);
}

}  // namespace

Result<Trial> try_exchanges(comm::Communicator& hosts, const TrialOptions& options, uint32_t label) {
  try {
    Trial trial;
    REMUDA_TRY(measure_rate(hosts, trial, label));
    if (values_of(options.shapes) == 0) return trial;
    if (options.powersgd) {
      REMUDA_ASSIGN(trial.powersgd_s, try_powersgd(hosts, trial, options, label));
    }
    if (options.one_bit) {
      REMUDA_ASSIGN(trial.one_bit_s, try_one_bit(hosts, trial, options, label));
    }
    REMUDA_TRY(as_the_first(hosts, trial, label));
    return trial;
  } catch (const std::bad_alloc&) {
    return failed("this host has no room to try how long packed gradients take; give train.compression another value");
  }
}

}  // namespace remuda::compress
