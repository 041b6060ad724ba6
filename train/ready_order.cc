#include "train/ready_order.h"

#include <algorithm>
#include <memory>
#include <ranges>
#include <span>
#include <string>

#include "train/labels.h"
#include "train/model/recompute.h"

namespace remuda::train {
namespace {

/// Which parameters became ready in a backward pass, and when.
struct Fired {
  explicit Fired(size_t parameters) : times(parameters), outside(parameters) {}

  void add(size_t parameter) {
    sequence.push_back(int64_t(parameter));
    ++times[parameter];
    if (!in_recomputed_block()) ++outside[parameter];
  }
  /// By their last time; those that never were come last, and count as one time.
  std::vector<int64_t> order() {
    std::vector<int64_t> order;
    std::vector<int> seen(times.size());
    for (const int64_t i : std::views::reverse(sequence))
      if (seen[size_t(i)]++ == 0) order.push_back(i);
    std::ranges::reverse(order);
    for (size_t i = 0; i < times.size(); ++i) {
      if (times[i] > 0) continue;
      times[i] = 1;
      order.push_back(int64_t(i));
    }
    return order;
  }

  std::vector<int64_t> sequence, times;
  std::vector<int> outside;  ///< of recomputed blocks
};

}  // namespace

Result<ReadyOrder> ready_order(comm::Communicator& communicator, const std::vector<torch::Tensor>& parameters,
                               const std::function<void()>& backward) {
  auto fired = std::make_shared<Fired>(parameters.size());
  std::vector<GradAccumulator> accumulators;
  for (size_t i = 0; i < parameters.size(); ++i) {
    accumulators.push_back(torch::autograd::impl::grad_accumulator(parameters[i]));
    add_post_accumulate_hook(accumulators.back(), [recorder = std::weak_ptr(fired), i] {
      if (const auto list = recorder.lock()) list->add(i);
    });
  }
  backward();
  if (std::ranges::any_of(fired->outside, [](int times) { return times > 1; }))
    return usage_error(std::string("in the trial step ") + kReadyTwiceText);
  std::vector<int64_t> both = fired->order();
  both.insert(both.end(), fired->times.begin(), fired->times.end());
  REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(both)), 0, label::kOrder));
  const auto middle = both.begin() + std::ssize(parameters);
  return ReadyOrder{{both.begin(), middle}, {middle, both.end()}};
}

}  // namespace remuda::train
