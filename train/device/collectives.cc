#include "train/device/collectives.h"

#include <algorithm>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>
#include <numeric>

#include "train/device/vendor_runtime.h"
#include "train/error_text.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

/// Of which libraries send in one piece, in small ones, and in a pipeline; and about what buckets have.
std::vector<size_t> sizes_of(size_t largest_bytes) {
  constexpr size_t kLeast = 1 << 10;
  return {kLeast, 64 << 10, 1 << 20, std::max(kLeast, largest_bytes)};
}

comm::DevicePlace device_place(const DeviceOps& ops) {
  comm::DevicePlace place{.kind = c10::DeviceTypeName(ops.device().type(), true)};
  if (ops.is_synchronous()) return place;
  if (const auto address = device_address(ops.device().index())) {
    place.maker = address->maker;
    place.address = address->address;
  }
  return place;
}

comm::Parts uneven_parts(int ranks, size_t count) {
  std::vector<double> weights(static_cast<size_t>(ranks));
  std::iota(weights.begin(), weights.end(), 1.0);
  return comm::parts_by(weights, count, sizeof(float));
}

comm::Parts equal_parts(int ranks, size_t count) {
  std::vector<size_t> ends;
  for (int rank = 1; rank <= ranks; ++rank) ends.push_back(count / size_t(ranks) * size_t(rank));
  return comm::Parts(std::move(ends));
}

/// Whole numbers, small enough for sums that are exact in any order.
torch::Tensor pattern(size_t count, int factor) {
  return torch::arange(int64_t(count), torch::kLong).remainder(251).mul(factor).to(torch::kFloat);
}

torch::Tensor part(const torch::Tensor& all, comm::Chunk range) {
  return all.narrow(0, int64_t(range.begin), int64_t(range.size()));
}

class Trial {
 public:
  Trial(comm::DeviceCollectives& collectives, const DeviceOps& ops, comm::Parts parts, double timeout_s)
      : collectives_(collectives),
        ops_(ops),
        bytes_(parts.count() * sizeof(float)),
        timeout_s_(timeout_s),
        parts_(std::move(parts)) {}

  Result<void> run() {
    const int ranks = collectives_.size();
    const torch::Tensor sums = pattern(parts_.count(), ranks * (ranks + 1) / 2);
    const torch::Tensor values = pattern(parts_.count(), collectives_.rank() + 1).to(ops_.device());
    const std::span bytes(static_cast<std::byte*>(values.data_ptr()), values.nbytes());
    REMUDA_TRY(call("a sum", [&](void* stream) {
      return collectives_.reduce_scatter({comm::Element::float32, bytes}, parts_, stream);
    }));
    const comm::Chunk own = parts_.of(collectives_.rank());
    const Result<void> summed = compare("a sum", values, sums, own);
    part(values, own).copy_(part(sums, own));  // so that others do not find fault with a gather
    REMUDA_TRY(call("a gather", [&](void* stream) {
      return collectives_.gather_parts(bytes, parts_.in_bytes(sizeof(float)), stream);
    }));
    REMUDA_TRY(summed);  // now that the others do not wait for this rank
    return compare("a gather", values, sums, {0, parts_.count()});
  }

 private:
  std::string text(const char* what) const {
    return fmt::format("{} of {} bytes by {}", what, bytes_, collectives_.name());
  }

  /// Of values that are there: what has put them there was waited for.
  Result<void> call(const char* what, const std::function<Result<void>(void*)>& give) const {
    REMUDA_ASSIGN(const Moment done, ops_.in_library(give, {}));
    return ops_.wait(done, text(what), timeout_s_, [this] { return collectives_.check(); });
  }

  Result<void> compare(const char* what, const torch::Tensor& values, const torch::Tensor& expected,
                       comm::Chunk range) const {
    if (part(values.to(torch::kCPU), range).equal(part(expected, range))) return {};
    return failed(fmt::format("{} is wrong", text(what)));
  }

  comm::DeviceCollectives& collectives_;
  const DeviceOps& ops_;
  const size_t bytes_;
  const double timeout_s_;
  const comm::Parts parts_;
};

Result<void> outcome_of(Trial trial) {
  try {
    return trial.run();
  } catch (const std::exception& error) {
    return failed(sentence_of(error));
  }
}

}  // namespace

Result<comm::OpenedCollectives> open_collectives(comm::Communicator& communicator, const DeviceOps& ops,
                                                 const CollectivesTrial& trial) {
  const c10::DeviceGuard current(ops.device());  // a library takes that of the calling thread
  REMUDA_ASSIGN(comm::OpenedCollectives opened,
                comm::open_device_collectives(communicator, {.place = device_place(ops),
                                                             .folders = library_folders(),
                                                             .connect_timeout_s = trial.connect_timeout_s}));
  if (!opened.collectives) return opened;
  opened.collectives->set_timeout(trial.timeout_s);
  opened.collectives->take_equal_parts_at_once(trial.equal_parts);
  std::vector<comm::Parts> all_parts;
  for (const size_t bytes : sizes_of(trial.largest_bytes)) {
    all_parts.push_back(uneven_parts(communicator.size(), bytes / sizeof(float)));
    if (trial.equal_parts) all_parts.push_back(equal_parts(communicator.size(), bytes / sizeof(float)));
  }
  for (const comm::Parts& parts : all_parts) {
    const Result<void> outcome = outcome_of(Trial(*opened.collectives, ops, parts, trial.timeout_s));
    if (!outcome) opened.collectives->abort();
    REMUDA_ASSIGN(std::string why_not, comm::first_error(communicator, outcome, label::kCollectives));
    if (!why_not.empty()) return comm::OpenedCollectives{nullptr, std::move(why_not)};
  }
  return opened;
}

}  // namespace remuda::train
