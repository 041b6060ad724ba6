// Buckets of which one rank computes and owns everything: nothing is sent, and nothing leaves the device.
#include <utility>

#include "train/bucket_exchange.h"
#include "train/device_norms.h"
#include "train/sum_of_squares.h"

namespace remuda::train {
namespace {

class ByOne final : public BucketExchange {
 public:
  ByOne(const DeviceOps& ops, FlatParameters& flat, UpdatesOn updates_on, int rank)
      : ops_(ops), flat_(flat), updates_on_(updates_on), rank_(rank), norms_(ops, flat) {}

  void set_silent(const std::vector<bool>& ranks) override { speaks_ = ranks.empty() || !ranks[size_t(rank_)]; }
  bool speaks() const override { return speaks_; }

  Moment give_gradients(size_t bucket) override {
    if (!speaks_) return {};
    round(flat_.layout().bucket(bucket));
    return is_on_host() ? flat_.gradients().to_host(flat_.layout().bucket(bucket)) : ops_.here();
  }

  Result<void> reduce(size_t bucket, const Moment& given) override {
    if (!speaks_) return {};
    const comm::Chunk all = flat_.layout().bucket(bucket);
    if (is_on_host()) {
      REMUDA_TRY(ops_.wait(given, "the copy of gradients", timeout_s_));
      square_norm_ += sum_of_squares(narrow(flat_.gradients().host(), all));
      return {};
    }
    REMUDA_ASSIGN(norms_taken_, ops_.in_library(
                                    [&](void*) -> Result<void> {
                                      norms_.take(bucket, all);
                                      return {};
                                    },
                                    given));
    return {};
  }

  Result<double> take_square_norm() override {
    if (!speaks_ || is_on_host()) return std::exchange(square_norm_, 0);
    REMUDA_TRY(ops_.wait(norms_taken_, "the norm of its gradients", timeout_s_));
    return norms_.square_sum();
  }

  Result<void> take_sums() override { return {}; }  // they are there

  std::vector<Moment> give_values(comm::Chunk buckets, Mirror& values) override {
    std::vector<Moment> moments(buckets.size());
    if (!speaks_ || updates_on_ == UpdatesOn::device) return moments;
    for (size_t bucket = buckets.end; bucket-- > buckets.begin;)
      moments[bucket - buckets.begin] = values.to_device(flat_.layout().bucket(bucket));
    return moments;
  }

  Result<Moment> gather(size_t, Mirror&, const Moment& given) override { return given; }
  Result<void> finish_gather() override { return {}; }
  void take_values(Mirror& values) override {
    if (updates_on_ == UpdatesOn::host) values.join();
  }
  void set_timeout(double seconds) override { timeout_s_ = seconds; }

 private:
  /// Whether gradients are in memory of the host, for updates there.
  bool is_on_host() const { return ops_.is_synchronous() || updates_on_ == UpdatesOn::host; }
  /// As where they are sent.
  void round(comm::Chunk range) const {
    const Mirror &sums = flat_.gradients(), &sent = flat_.sent_gradients();
    if (&sent == &sums) return;
    flat_.round_gradients(range);
    const torch::NoGradGuard no_grad;
    narrow(sums.device(), range).copy_(narrow(sent.device(), range));
  }

  const DeviceOps& ops_;
  FlatParameters& flat_;
  const UpdatesOn updates_on_;
  const int rank_;
  DeviceNorms norms_;
  Moment norms_taken_;  ///< those of all buckets so far
  bool speaks_ = true;
  double square_norm_ = 0;
  double timeout_s_ = comm::ConnectOptions().timeout_s;
};

}  // namespace

std::unique_ptr<BucketExchange> by_one(const DeviceOps& ops, FlatParameters& flat, UpdatesOn updates_on, int rank) {
  return std::make_unique<ByOne>(ops, flat, updates_on, rank);
}

}  // namespace remuda::train
