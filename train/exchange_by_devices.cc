// Buckets between the devices themselves. Nothing but the norm comes to the host.
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/clock.h"
#include "profile/recorder.h"
#include "train/agreement.h"
#include "train/bucket_exchange.h"
#include "train/device_norms.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

/// Where a rank stands, as it tells the others once it has waited too long.
struct Standing {
  uint64_t given = 0, done = 0;  ///< calls that the library has taken, and that its device has finished
  std::array<char, 240> error{};
};

std::string text_of(const std::vector<Standing>& all, size_t rank) {
  return fmt::format("rank {}: {} ({} of {} calls done)", rank, all[rank].error.data(), all[rank].done,
                     all[rank].given);
}

class ByDevices final : public BucketExchange {
 public:
  ByDevices(comm::Communicator& communicator, const DeviceOps& ops, FlatParameters& flat,
            comm::DeviceCollectives& collectives, UpdatesOn updates_on)
      : communicator_(communicator),
        ops_(ops),
        flat_(flat),
        collectives_(collectives),
        updates_on_(updates_on),
        rank_(communicator.rank()),
        norms_(ops, flat) {
    set_timeout(comm::ConnectOptions().timeout_s);
  }
  /// What is under way then will be missed by the others anyway; memory that it works on is about to go.
  ~ByDevices() override {
    if (!under_way_.empty()) collectives_.abort();
  }

  Moment give_gradients(size_t) override { return ops_.here(); }

  Result<void> reduce(size_t bucket, const Moment& given) override {
    const FlatLayout& layout = flat_.layout();
    const comm::Chunk own = layout.own(bucket, rank_);
    const comm::Values values = flat_.gradients().device_values(layout.bucket(bucket));
    const profile::Span span("reduce_scatter", details(bucket, values.bytes.size()));
    return give(fmt::format("the sum of bucket {}", bucket), given, [&](void* stream) -> Result<void> {
      REMUDA_TRY(collectives_.reduce_scatter(values, layout.parts(bucket), stream));
      norms_.take(bucket, own);
      return {};
    });
  }

  Result<double> take_square_norm() override {
    REMUDA_TRY(finish());
    return norms_.square_sum();
  }

  /// take_square_norm() has waited for them.
  Result<void> take_sums() override {
    if (updates_on_ == UpdatesOn::device) return {};
    for (const Moment& there : flat_.gradients().to_host(own_of({0, flat_.layout().buckets()})))
      REMUDA_TRY(ops_.wait(there, "the copy of sums", timeout_s_));
    return {};
  }

  /// The moment of the last one, which is gathered first, is that of all of them.
  std::vector<Moment> give_values(comm::Chunk buckets, Mirror& values) override {
    Moment there = ops_.here();
    if (updates_on_ == UpdatesOn::host)  // which has waited for the device
      for (const comm::Chunk& own : own_of(buckets)) there = values.to_device(own);
    std::vector<Moment> moments(buckets.size());
    if (!moments.empty()) moments.back() = std::move(there);
    return moments;
  }

  Result<Moment> gather(size_t bucket, Mirror& values, const Moment& given) override {
    const FlatLayout& layout = flat_.layout();
    const std::span<std::byte> bytes = values.device_values(layout.bucket(bucket)).bytes;
    const comm::Parts parts = layout.parts(bucket).in_bytes(values.device().element_size());
    const profile::Span span("gather", details(bucket, bytes.size()));
    REMUDA_TRY(give(fmt::format("the parameters of bucket {}", bucket), given,
                    [&](void* stream) { return collectives_.gather_parts(bytes, parts, stream); }));
    return under_way_.back().done;
  }

  Result<void> finish_gather() override { return finish(); }
  void take_values(Mirror&) override {}  // finish_gather() has waited for them

  /// One half to wait, the other to find out who is to blame.
  void set_timeout(double seconds) override {
    timeout_s_ = seconds / 2;
    collectives_.set_timeout(timeout_s_);
  }

 private:
  std::vector<comm::Chunk> own_of(comm::Chunk buckets) const {
    std::vector<comm::Chunk> own;
    for (size_t bucket = buckets.begin; bucket < buckets.end; ++bucket)
      own.push_back(flat_.layout().own(bucket, rank_));
    return own;
  }

  struct Call {
    std::string what;
    Moment done;
  };

  Result<void> give(std::string what, const Moment& since, const std::function<Result<void>(void*)>& call) {
    const double start = monotonic_s();
    auto given = ops_.in_library(call, since);
    if (!given) return tl::unexpected(explained(given.error(), start));
    ++given_;
    under_way_.push_back({std::move(what), std::move(*given)});
    return {};
  }

  Result<void> finish() {
    if (under_way_.empty()) return {};
    const profile::Span span("devices");
    const double start = monotonic_s();
    const std::string what = fmt::format("{} by {}", under_way_.back().what, collectives_.name());
    const auto outcome = ops_.wait(under_way_.back().done, what, timeout_s_, [this] { return collectives_.check(); });
    if (!outcome) return tl::unexpected(explained(outcome.error(), start));
    under_way_.clear();
    return {};
  }

  /// Where this rank has waited as long as it may, the others most likely wait, too: asks them. Of any other failure it
  /// reports at once.
  Error explained(Error mine, double since_s) {
    if (monotonic_s() - since_s < timeout_s_) return mine;
    Standing standing{.given = given_, .done = given_ - left()};
    mine.message.copy(standing.error.data(), standing.error.size() - 1);
    communicator_.set_timeout(timeout_s_);
    const auto all = gather_all(communicator_, standing, label::kStuck);
    collectives_.abort();
    under_way_.clear();
    if (!all)
      return {all.error().kind, fmt::format("{}; then {}", mine.message, all.error().message), all.error().peer};
    return {ErrorKind::failed, both_sides(*all), -1};
  }

  size_t left() const {
    return size_t(std::ranges::count_if(under_way_, [](const Call& call) { return !call.done->query(); }));
  }

  /// The rank that is behind, and another one; the same on all ranks.
  static std::string both_sides(const std::vector<Standing>& all) {
    const auto behind =
        std::ranges::min_element(all, {}, [](const Standing& rank) { return std::pair(rank.given, rank.done); });
    const auto rank = size_t(behind - all.begin());
    return fmt::format("{}; {}", text_of(all, rank), text_of(all, rank == 0 ? 1 : 0));
  }

  static profile::Details details(size_t bucket, size_t bytes) {
    return {{{"bucket", int64_t(bucket)}, {"bytes", int64_t(bytes)}}};
  }

  comm::Communicator& communicator_;
  const DeviceOps& ops_;
  FlatParameters& flat_;
  comm::DeviceCollectives& collectives_;
  const UpdatesOn updates_on_;
  const int rank_;
  DeviceNorms norms_;
  std::vector<Call> under_way_;
  uint64_t given_ = 0;
  double timeout_s_ = 0;
};

}  // namespace

std::unique_ptr<BucketExchange> by_devices(comm::Communicator& communicator, const DeviceOps& ops, FlatParameters& flat,
                                           comm::DeviceCollectives& collectives, UpdatesOn updates_on) {
  return std::make_unique<ByDevices>(communicator, ops, flat, collectives, updates_on);
}

}  // namespace remuda::train
