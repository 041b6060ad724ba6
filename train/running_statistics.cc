#include "train/running_statistics.h"

#include <algorithm>
#include <numeric>

#include "profile/recorder.h"
#include "train/agreement.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

/// base^count, by the same products on every processor.
double repeated_product(double base, int64_t count) {
  double result = 1;
  for (; count > 0; count /= 2, base *= base)
    if (count % 2 == 1) result *= base;
  return result;
}

torch::Tensor host_copy(const torch::Tensor& tensor, torch::ScalarType type) {
  return tensor.to(torch::kCPU, type).contiguous();
}

/// Collective: a row of each rank.
Result<torch::Tensor> gather_rows(comm::Communicator& communicator, const torch::Tensor& mine) {
  torch::Tensor all = torch::empty({communicator.size(), mine.numel()}, mine.options());
  const auto bytes = [](const torch::Tensor& of) {
    return std::span(static_cast<std::byte*>(of.data_ptr()), of.nbytes());
  };
  REMUDA_TRY(communicator.all_gather(bytes(mine), bytes(all), label::kBuffers));
  return all;
}

}  // namespace

OrderedWeights weights_in_order(std::optional<double> momentum, int64_t batches_before,
                                std::span<const int64_t> counted) {
  const int64_t all = std::accumulate(counted.begin(), counted.end(), int64_t{0});
  const auto kept_after = [&](int64_t count) {  // of what was there before
    if (momentum) return repeated_product(1 - *momentum, count);
    return batches_before == 0 ? 0.0 : double(batches_before) / double(batches_before + count);
  };
  OrderedWeights weights{.before = all > 0 ? kept_after(all) : 1, .ranks = {}};
  int64_t left = all;
  for (const int64_t own : counted) {
    left -= own;
    const double weight = own == 0   ? 0
                          : momentum ? repeated_product(1 - *momentum, left)
                                     : double(batches_before + own) / double(batches_before + all);
    weights.ranks.push_back(weight);
    if (own > 0) weights.before -= weight * kept_after(own);
  }
  return weights;
}

RunningStatistics::RunningStatistics(std::vector<NormStatistics> norms) : norms_(std::move(norms)) {
  const auto unknown = std::ranges::stable_partition(norms_, &NormStatistics::is_known);
  known_ = norms_.size() - unknown.size();
  read(kept_);
  if (known_ > 0) read(now_);
}

void RunningStatistics::read(Values& into) const {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> statistics, batches;
  for (const NormStatistics& norm : norms_) {
    statistics.push_back(norm.mean.flatten());
    statistics.push_back(norm.variance.flatten());
    if (norm.batches.defined()) batches.push_back(norm.batches.flatten());
  }
  const auto join = [](torch::Tensor& to, const std::vector<torch::Tensor>& parts) {
    if (parts.empty()) return;
    if (to.defined() && to.device() == parts.front().device())
      torch::cat_out(to, parts);
    else
      to = torch::cat(parts);
  };
  join(into.statistics, statistics);
  join(into.batches, batches);
}

void RunningStatistics::write(const Values& values) const {
  const torch::NoGradGuard no_grad;
  int64_t at = 0, counter = 0;
  for (const NormStatistics& norm : norms_) {
    for (const torch::Tensor& to : {norm.mean, norm.variance}) {
      torch::Tensor(to).copy_(values.statistics.narrow(0, at, to.numel()).view(to.sizes()));
      at += to.numel();
    }
    if (norm.batches.defined()) torch::Tensor(norm.batches).copy_(values.batches[counter++].view(norm.batches.sizes()));
  }
}

void RunningStatistics::keep() { read(kept_); }

void RunningStatistics::restore() const { write(kept_); }

std::vector<torch::Tensor> RunningStatistics::joined() const {
  std::vector<torch::Tensor> all;
  for (size_t i = 0; i < known_; ++i)
    for (const torch::Tensor& one : {norms_[i].mean, norms_[i].variance, norms_[i].batches})
      if (one.defined()) all.push_back(one);
  return all;
}

Result<bool> RunningStatistics::are_the_same(comm::Communicator& communicator) {
  if (known_ == 0) return true;
  read(now_);
  int64_t count = 0;
  for (size_t i = 0; i < known_; ++i) count += norms_[i].mean.numel() + norms_[i].variance.numel();
  const torch::Tensor mine = host_copy(now_.statistics, now_.statistics.scalar_type()).narrow(0, 0, count);
  REMUDA_ASSIGN(const torch::Tensor all, gather_rows(communicator, mine.contiguous()));
  return (all == all[0]).all().item<bool>();
}

Result<void> RunningStatistics::join(comm::Communicator& communicator, const std::vector<int>& pieces) {
  if (known_ == 0) return {};
  const profile::Span span("batch norm");
  read(now_);
  const torch::Tensor mine = host_copy(now_.statistics, now_.statistics.scalar_type());
  const torch::Tensor before = host_copy(kept_.statistics, torch::kDouble);
  REMUDA_ASSIGN(const torch::Tensor of_ranks, gather_rows(communicator, mine));
  torch::Tensor batches_before, batches;  // [counter], [rank, counter]
  if (now_.batches.defined()) {
    batches_before = host_copy(kept_.batches, torch::kLong);
    REMUDA_ASSIGN(batches, gather_rows(communicator, host_copy(now_.batches, torch::kLong)));
  }
  Values joined{host_copy(now_.statistics, torch::kDouble).clone(),
                batches.defined() ? host_copy(now_.batches, torch::kLong).clone() : torch::Tensor()};
  int64_t at = 0, counter = 0;
  for (size_t i = 0; i < known_; ++i) {
    const bool has_counter = norms_[i].batches.defined();
    const int64_t count = norms_[i].mean.numel() + norms_[i].variance.numel();
    const int64_t counted_before = has_counter ? batches_before[counter].item<int64_t>() : 0;
    std::vector<int64_t> counted(pieces.begin(), pieces.end()), by_counter(counted.size(), 0);
    for (size_t rank = 0; has_counter && rank < counted.size(); ++rank)
      by_counter[rank] = batches[int64_t(rank)][counter].item<int64_t>() - counted_before;
    const bool has_counted = std::ranges::any_of(by_counter, [](int64_t count) { return count != 0; });
    if (has_counted || !norms_[i].momentum) counted = by_counter;  // that of an instance norm stands still
    const OrderedWeights weights = weights_in_order(norms_[i].momentum, counted_before, counted);
    torch::Tensor sum = joined.statistics.narrow(0, at, count);
    sum.copy_(before.narrow(0, at, count) * weights.before);
    for (size_t rank = 0; rank < counted.size(); ++rank)
      if (weights.ranks[rank] != 0)
        sum.add_(of_ranks[int64_t(rank)].narrow(0, at, count).to(torch::kDouble), weights.ranks[rank]);
    if (has_counter)
      joined.batches[counter++] =
          torch::tensor(std::accumulate(by_counter.begin(), by_counter.end(), counted_before), torch::kLong);
    at += count;
  }
  write(joined);
  return {};
}

}  // namespace remuda::train
