#include "parallel/parts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <utility>

#include "balance/shares.h"
#include "base/env.h"
#include "base/number.h"
#include "base/text.h"
#include "parallel/raise.h"

namespace remuda::parallel {
namespace {

constexpr double kShrunk = 0.75;  ///< of a share that did not fit in memory

}  // namespace

Result<std::vector<double>> launchers_shares(const std::string& text, int ranks) {
  std::vector<double> shares;
  for (const std::string& word : text.empty() ? std::vector<std::string>{} : split(text, ',')) {
    const double share = parse_number<double>(word).value_or(-1);
    if (!(std::isfinite(share) && share >= 0))
      return usage_error(fmt::format("{} is '{}'; it must be numbers with commas between them ({})",
                                     env::job_shares.name, printable(text), env::job_shares.meaning));
    shares.push_back(share);
  }
  const bool usable = int(shares.size()) == ranks && std::accumulate(shares.begin(), shares.end(), 0.0) > 0;
  return usable ? shares : std::vector<double>(size_t(std::max(1, ranks)), 1.0 / std::max(1, ranks));
}

Parts::Parts(int rank, int ranks, std::vector<double> fixed, int64_t micro_batch)
    : rank_(rank), ranks_(ranks), fixed_(std::move(fixed)), micro_batch_(std::max<int64_t>(1, micro_batch)) {}

balance::BalanceOptions Parts::options(int units) const {
  using balance::BalancePolicy;
  return {.policy = fixed_.empty() ? BalancePolicy::automatic : BalancePolicy::fixed,
          .global_batch = units,
          .weights = fixed_,
          .bounds = std::vector(size_t(ranks_), balance::Bounds{0, units})};
}

Part Parts::next(int64_t batch) {
  if (batch < 1 || batch > std::numeric_limits<int>::max())
    raise_usage(fmt::format("a batch of {} samples cannot be split; it must have 1 to {}", batch,
                            std::numeric_limits<int>::max()));
  if (!balancer_) {
    balancer_.emplace(options(units_of(batch)));
    shares_ = or_raise(balancer_->start()).shares;
  }
  batch_ = batch;
  parts_ = split(batch);
  return mine_of(parts_, batch);
}

std::vector<int> Parts::split(int64_t batch) const {
  const int units = units_of(batch);
  const bool usual = units == std::accumulate(shares_.begin(), shares_.end(), 0);
  return usual ? shares_ : balance::apportion(units, shares_);
}

Part Parts::mine_of(const std::vector<int>& parts, int64_t batch) const {
  const int64_t before = std::accumulate(parts.begin(), parts.begin() + rank_, int64_t{0});
  const int64_t begin = std::min(before * micro_batch_, batch);
  return {begin, std::min((before + parts[size_t(rank_)]) * micro_batch_, batch) - begin};
}

train::StepReport Parts::report(double weight) {
  train::StepReport report{.weight = weight,
                           .status = next_state_.empty() ? 0 : unsigned(train::kMoving),
                           .compute_s = std::exchange(compute_s_, 0),
                           .wait_s = std::exchange(wait_s_, 0),
                           .update_s = std::exchange(update_s_, 0),
                           .memory_bytes = memory_bytes_};
  report.global_batch = double(std::exchange(batch_, 0));
  if (balancer_ && rank_ == 0) report.next_shares = balancer_->shares();
  return report;
}

void Parts::learn(const train::StepTotals& totals) {
  ++steps_;
  if (!balancer_) return;
  std::vector<double> parts_s;  // without the update, which does not go by samples
  for (size_t rank = 0; rank < totals.compute_s.size(); ++rank)
    parts_s.push_back(totals.compute_s[rank] - totals.update_s[rank]);
  if (rank_ == 0 && last_parts_ == balancer_->shares()) balancer_->observe(steps_, parts_s);
  last_parts_ = std::exchange(parts_, {});
  shares_ = totals.next_shares;
  if (!moves_ || !next_state_.empty()) return;
  if (auto parts = moves_->observe({totals.update_s, totals.memory_bytes, totals.compute_s[0] + totals.wait_s[0]}))
    next_state_ = std::move(*parts);
}

std::vector<int> Parts::shrink(int rank) {
  const int share = shares_[size_t(rank)];
  if (share > 1) balancer_->limit(steps_, rank, int(share * kShrunk));  // where it does not fit at all, nothing changes
  return balancer_->shares();
}

void Parts::take(std::vector<int> shares) {
  shares_ = std::move(shares);
  last_parts_.clear();
}

void Parts::move_state(std::vector<balance::StateOwner> owners, const balance::StateBytes& bytes,
                       std::vector<double> parts) {
  moves_.emplace(std::move(owners), bytes, std::move(parts));
}

}  // namespace remuda::parallel
