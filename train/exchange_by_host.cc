// Buckets through memory of the host, and those that only get there. On a CPU they live there, and nothing is copied.
#include <algorithm>
#include <fmt/format.h>

#include "profile/recorder.h"
#include "train/bucket_exchange.h"
#include "train/sum_of_squares.h"

namespace remuda::train {
namespace {

profile::Details details(size_t bucket, size_t bytes) {
  return {{{"bucket", int64_t(bucket)}, {"bytes", int64_t(bytes)}}};
}

class ByHost final : public BucketExchange {
 public:
  ByHost(comm::Communicator& communicator, const DeviceOps& ops, FlatParameters& flat, UpdatesOn updates_on)
      : communicator_(communicator), ops_(ops), flat_(flat), updates_on_(updates_on), rank_(communicator.rank()) {}

  void set_silent(const std::vector<bool>& ranks) override { silent_ = ranks; }
  bool speaks() const override { return silent_.empty() || !silent_[size_t(rank_)]; }

  Moment give_gradients(size_t bucket) override {
    if (!speaks()) return {};
    const comm::Chunk range = flat_.layout().bucket(bucket);
    flat_.round_gradients(range);
    return flat_.sent_gradients().to_host(range);
  }

  Result<void> reduce(size_t bucket, const Moment& given) override {
    const FlatLayout& layout = flat_.layout();
    const Mirror& gradients = flat_.gradients();
    const comm::Values sent = flat_.sent_gradients().host_values(layout.bucket(bucket));
    const profile::Details of_bucket = details(bucket, sent.bytes.size());
    {
      const profile::Span span("copy", of_bucket);
      REMUDA_TRY(ops_.wait(given, fmt::format("the copy of gradients (bucket {})", bucket), timeout_s_));
    }
    const comm::Chunk own = layout.own(bucket, rank_);
    {
      const profile::Span span("reduce_scatter", of_bucket);
      REMUDA_TRY(communicator_.reduce_scatter(sent, layout.parts(bucket), gradients.host_values(own), uint32_t(bucket),
                                              silent_));
    }
    square_norm_ += sum_of_squares(narrow(gradients.host(), own));
    return {};
  }

  Result<double> take_square_norm() override { return std::exchange(square_norm_, 0); }

  Result<void> take_sums() override {
    if (updates_on_ == UpdatesOn::host) return {};  // they are there
    Mirror& gradients = flat_.gradients();
    for (size_t bucket = 0; bucket < flat_.layout().whole_buckets(); ++bucket)
      gradients.to_device(flat_.layout().own(bucket, rank_));
    gradients.join();
    return {};
  }

  /// Copied in the order in which they are gathered.
  std::vector<Moment> give_values(comm::Chunk buckets, Mirror& values) override {
    if (updates_on_ == UpdatesOn::host) return std::vector<Moment>(buckets.size());
    std::vector<comm::Chunk> own;
    for (size_t bucket = buckets.end; bucket-- > buckets.begin;) own.push_back(flat_.layout().own(bucket, rank_));
    std::vector<Moment> moments = values.to_host(own);
    std::ranges::reverse(moments);
    return moments;
  }

  Result<Moment> gather(size_t bucket, Mirror& values, const Moment& given) override {
    const FlatLayout& layout = flat_.layout();
    const size_t element = values.host().element_size();
    const comm::Chunk all = layout.bucket(bucket), own = layout.own(bucket, rank_);
    const profile::Details of_bucket = details(bucket, all.size() * element);
    {
      const profile::Span span("copy", of_bucket);
      REMUDA_TRY(ops_.wait(given, fmt::format("the copy of parameters (bucket {})", bucket), timeout_s_));
    }
    const profile::Span span("gather", of_bucket);
    REMUDA_TRY(communicator_.gather_parts(values.host_bytes().subspan(all.begin * element, all.size() * element),
                                          layout.parts(bucket).in_bytes(element), uint32_t(bucket)));
    if (updates_on_ == UpdatesOn::host) return values.to_device(all);
    values.to_device({all.begin, own.begin});
    return values.to_device({own.end, all.end});
  }

  Result<void> finish_gather() override { return {}; }
  void take_values(Mirror& values) override { values.join(); }
  void set_timeout(double seconds) override { timeout_s_ = seconds; }

 private:
  comm::Communicator& communicator_;
  const DeviceOps& ops_;
  FlatParameters& flat_;
  const UpdatesOn updates_on_;
  const int rank_;
  std::vector<bool> silent_;
  double square_norm_ = 0;
  double timeout_s_ = comm::ConnectOptions().timeout_s;
};

class KeptOnHost final : public BucketExchange {
 public:
  KeptOnHost(const DeviceOps& ops, FlatParameters& flat) : ops_(ops), flat_(flat) {}

  Moment give_gradients(size_t bucket) override { return flat_.gradients().to_host(flat_.layout().bucket(bucket)); }
  Result<void> reduce(size_t bucket, const Moment& given) override {
    const comm::Chunk all = flat_.layout().bucket(bucket);
    const profile::Span span("copy", details(bucket, all.size() * flat_.gradients().host().element_size()));
    REMUDA_TRY(ops_.wait(given, fmt::format("the copy of gradients (bucket {})", bucket), timeout_s_));
    square_norm_ += sum_of_squares(narrow(flat_.gradients().host(), all));
    return {};
  }
  Result<double> take_square_norm() override { return std::exchange(square_norm_, 0); }
  Result<void> take_sums() override { return {}; }
  std::vector<Moment> give_values(comm::Chunk buckets, Mirror&) override { return std::vector<Moment>(buckets.size()); }
  Result<Moment> gather(size_t, Mirror&, const Moment&) override { return Moment(); }
  Result<void> finish_gather() override { return {}; }
  void take_values(Mirror&) override {}
  void set_timeout(double seconds) override { timeout_s_ = seconds; }

 private:
  const DeviceOps& ops_;
  FlatParameters& flat_;
  double square_norm_ = 0;
  double timeout_s_ = comm::ConnectOptions().timeout_s;
};

}  // namespace

std::unique_ptr<BucketExchange> kept_on_host(const DeviceOps& ops, FlatParameters& flat) {
  return std::make_unique<KeptOnHost>(ops, flat);
}

std::unique_ptr<BucketExchange> by_host(comm::Communicator& communicator, const DeviceOps& ops, FlatParameters& flat,
                                        UpdatesOn updates_on) {
  return std::make_unique<ByHost>(communicator, ops, flat, updates_on);
}

}  // namespace remuda::train
