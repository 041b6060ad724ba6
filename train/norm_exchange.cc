#include "train/norm_exchange.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <stdexcept>

#include "base/check.h"
#include "base/clock.h"
#include "profile/recorder.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/model/norm_moments.h"

namespace remuda::train {
namespace {

[[noreturn]] void fail(const std::string& sentence) { throw std::runtime_error(sentence); }

}  // namespace

Result<std::unique_ptr<NormExchange>> NormExchange::create(comm::Communicator& communicator) {
  std::vector<int> all(size_t(communicator.size()));
  std::iota(all.begin(), all.end(), 0);
  REMUDA_ASSIGN(std::unique_ptr<comm::Communicator> own, communicator.split(all, label::kNorms));
  return std::unique_ptr<NormExchange>(new NormExchange(std::move(own)));
}

void NormExchange::add(NormLayer& layer) { layers_.push_back(&layer); }

void NormExchange::learn(const std::function<void()>& trial) {
  const Alone alone(this);
  calls_.clear();
  learning_ = true;
  try {
    trial();
  } catch (...) {
    learning_ = false;
    throw;
  }
  learning_ = false;
}

Result<void> NormExchange::agree() {
  REMUDA_ASSIGN(const auto counts, gather_all(*communicator_, uint64_t(calls_.size()), label::kNorms));
  const auto longest = std::ranges::max_element(counts);
  const int root = int(longest - counts.begin());
  std::vector<Call> all(*longest);
  if (communicator_->rank() == root) all = calls_;
  REMUDA_TRY(communicator_->broadcast(std::as_writable_bytes(std::span(all)), root, label::kNorms));
  const bool same = std::equal(calls_.begin(), calls_.end(), all.begin());
  REMUDA_ASSIGN(const auto agrees, gather_all(*communicator_, char(same), label::kNorms));
  if (const auto other = std::ranges::find(agrees, char(false)); other != agrees.end())
    return failed(fmt::format("the models of rank {} and rank {} call their batch norms in another order",
                              other - agrees.begin(), root));
  calls_ = std::move(all);
  return {};
}

NormExchange::Call NormExchange::call_of(NormLayer& layer, bool backward, size_t numbers) const {
  const auto found = std::ranges::find(layers_, &layer);
  REMUDA_CHECK(found != layers_.end(), "the layer was added");
  return {uint32_t(found - layers_.begin()), backward, numbers};
}

std::vector<double> NormExchange::add_up_moments(NormLayer& layer, std::vector<double> mine) {
  const Call call = call_of(layer, false, mine.size());
  std::vector<double> all = join(call, std::move(mine));
  if (!learning_) layer.count(all);
  return all;
}

std::vector<double> NormExchange::add_up_gradients(NormLayer& layer, std::vector<double> mine) {
  for (double& sum : mine) sum /= loss_scale_;
  const Call call = call_of(layer, true, mine.size());
  std::vector<double> all = join(call, std::move(mine));
  for (double& sum : all) sum *= loss_scale_;
  return all;
}

/// A layer's own call.
std::vector<double> NormExchange::join(const Call& call, std::vector<double> mine) {
  if (learning_) calls_.push_back(call);
  if (alone_) return mine;
  if (!outcome_) fail(outcome_.error().message);
  if (calls_.empty() || call != calls_[next_])
    fail(
        "batch norms are called in another order than in the trial; all pieces of all ranks must take the same way "
        "through the model");
  if (next_ == 0)
    if (const auto met = meet(true); !met) fail(met.error().message);
  auto all = make_next_call(mine);
  if (!all) fail(all.error().message);
  return std::move(*all);
}

/// Sums are added up in the order of the ranks; the same bits on all.
Result<std::vector<double>> NormExchange::make_next_call(std::span<const double> mine) {
  const Call call = calls_[next_];
  std::vector<double> all(mine.size() * size_t(communicator_->size()));
  REMUDA_TRY(gather(std::as_bytes(mine), std::as_writable_bytes(std::span(all)), label::kFirstNorm + uint32_t(next_)));
  next_ = (next_ + 1) % calls_.size();
  std::vector<double> total(mine.size());
  if (call.backward)
    for (size_t i = 0; i < all.size(); ++i) total[i % total.size()] += all[i];
  else
    combine_moments(all, total);
  return total;
}

/// Of a rank that has nothing to add.
Result<void> NormExchange::make_empty_call() {
  const Call call = calls_[next_];
  REMUDA_ASSIGN(const std::vector<double> all, make_next_call(std::vector<double>(call.numbers)));
  if (!call.backward && all[0] > 0) layers_[call.layer]->count(all);
  return {};
}

/// Before a piece, and after the last one of a rank: whether any rank has a further one.
Result<bool> NormExchange::meet(bool has_a_piece) {
  const char mine = has_a_piece ? 1 : 0;
  std::vector<char> all(size_t(communicator_->size()));
  REMUDA_TRY(gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), label::kNormPiece));
  return std::ranges::count(all, 0) < std::ssize(all);
}

Result<void> NormExchange::gather(std::span<const std::byte> mine, std::span<std::byte> all, uint32_t label) {
  const profile::Span span("batch norm");
  hooks_.before_wait();
  const double start = monotonic_s();
  outcome_ = communicator_->all_gather(mine, all, label);
  hooks_.waited(monotonic_s() - start);
  return outcome_;
}

Result<void> NormExchange::finish() {
  REMUDA_TRY(outcome_);
  while (next_ != 0) REMUDA_TRY(make_empty_call());
  for (;;) {
    REMUDA_ASSIGN(const bool another, meet(false));
    if (!another) return {};
    do {
      REMUDA_TRY(make_empty_call());
    } while (next_ != 0);
  }
}

}  // namespace remuda::train
