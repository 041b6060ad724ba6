#include "train/gradient_reducer.h"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <xxhash.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/env.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

constexpr const char* kTwice =
    "the gradient of a parameter became ready twice: backward() ran twice, or the parameter is in parts of the graph "
    "that run backward separately (checkpointing does so); run one backward() per step, on the sum of all losses";

torch::Tensor as_tensor(std::span<std::byte> memory, torch::ScalarType type) {
  const int64_t size = int64_t(memory.size() / c10::elementSize(type));
  return torch::from_blob(memory.data(), {size}, torch::TensorOptions().dtype(type));
}

/// A hash of count, shapes and types of all parameters: ranks whose models differ must not start.
uint64_t structure_hash(const std::vector<torch::Tensor>& parameters) {
  std::vector<int64_t> words{int64_t(parameters.size())};
  for (const auto& parameter : parameters) {
    words.push_back(int64_t(parameter.scalar_type()));
    words.push_back(parameter.dim());
    words.insert(words.end(), parameter.sizes().begin(), parameter.sizes().end());
  }
  return XXH3_64bits(words.data(), words.size() * sizeof(int64_t));
}

/// Every rank's `mine`, in rank order.
template <typename T>
Result<std::vector<T>> gather(comm::Communicator& communicator, const T& mine, uint32_t label) {
  std::vector<T> all(communicator.size());
  REMUDA_TRY(
      communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), label));
  return all;
}

/// The first rank whose hash is not rank 0's; 0 when all are the same.
size_t first_that_differs(const std::vector<uint64_t>& hashes) {
  for (size_t rank = 1; rank < hashes.size(); ++rank)
    if (hashes[rank] != hashes[0]) return rank;
  return 0;
}

std::string difference(const std::string& what, const std::vector<uint64_t>& hashes, size_t rank) {
  return fmt::format("{} of rank {} and rank 0 differ ({:016x}, {:016x})", what, rank, hashes[rank], hashes[0]);
}

Result<void> require_equal(comm::Communicator& communicator, uint64_t mine, uint32_t label, const std::string& what) {
  REMUDA_ASSIGN(const std::vector<uint64_t> hashes, gather(communicator, mine, label));
  if (const size_t rank = first_that_differs(hashes)) return failed(difference(what, hashes, rank));
  return {};
}

/// Why the parameters of `rank` may be other than those of rank 0. Collective.
Result<std::string> cause_in_kernels(comm::Communicator& communicator, torch::DeviceType device, size_t rank) {
  std::array<char, 96> mine{};
  kernels_of(device).copy(mine.data(), mine.size() - 1);
  REMUDA_ASSIGN(const auto all, gather(communicator, mine, label::kKernels));
  const std::string theirs = all[rank].data(), first = all[0].data();
  if (theirs == first) return fmt::format("both compute with the same kernels ({})", first);
  return fmt::format(
      "rank {} computes with other kernels ({}) than rank 0 ({}), which round differently; all ranks need the same "
      "libtorch and the same CPU kernels: set {} to the least of theirs (default, avx2 or avx512) for all",
      rank, theirs, first, env::aten_cpu_capability.name);
}

/// Parameter numbers in the order in which one backward pass finishes their gradients; unused ones come last.
Result<std::vector<int64_t>> ready_order(const std::vector<torch::Tensor>& parameters,
                                         const std::function<void()>& backward) {
  auto order = std::make_shared<std::vector<int64_t>>();
  std::vector<GradAccumulator> accumulators;
  for (size_t i = 0; i < parameters.size(); ++i) {
    accumulators.push_back(torch::autograd::impl::grad_accumulator(parameters[i]));
    add_post_accumulate_hook(accumulators.back(), [recorder = std::weak_ptr(order), i] {
      if (const auto list = recorder.lock()) list->push_back(int64_t(i));
    });
  }
  backward();
  std::vector<bool> used(parameters.size());
  for (const int64_t i : *order) {
    if (used[i]) return usage_error(std::string("in the trial step ") + kTwice);
    used[i] = true;
  }
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!used[i]) order->push_back(int64_t(i));
  return *order;
}

/// Reports a usage error that makes a step's sums wrong, on any rank; the error is the same on all.
Result<void> refuse_misuse(const StepTail& totals) {
  if (const int rank = totals.first_with(kReadyTwice); rank >= 0)
    return usage_error(fmt::format("on rank {} {}", rank, kTwice));
  if (const int rank = totals.first_with(kGradientMoved); rank >= 0)
    return usage_error(fmt::format(
        "on rank {} a gradient was reset or replaced between begin() and finish(), as zero_grad() does when "
        "it sets gradients to none; leave them in place, begin() zeroes them",
        rank));
  return {};
}

}  // namespace

Result<std::unique_ptr<GradientReducer>> GradientReducer::create(comm::Communicator& communicator,
                                                                 std::vector<torch::Tensor> parameters,
                                                                 const std::function<void()>& trial_backward,
                                                                 ReducerOptions options) {
  REMUDA_CHECK(!parameters.empty(), "there is something to train");
  const auto type = parameters[0].scalar_type();
  if (type != torch::kFloat && type != torch::kDouble)
    return usage_error(fmt::format("parameters are {}; float32 and float64 can be trained", toString(type)));
  for (const auto& parameter : parameters)
    if (parameter.scalar_type() != type)
      return usage_error(fmt::format("parameters mix {} and {}; they must have one type", toString(type),
                                     toString(parameter.scalar_type())));
  REMUDA_TRY(
      require_equal(communicator, structure_hash(parameters), label::kStructure, "the models (shapes and types)"));

  REMUDA_ASSIGN(auto order, ready_order(parameters, trial_backward));
  REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(order)), 0, label::kOrder));
  std::vector<torch::Tensor> ordered;
  for (const int64_t i : order) ordered.push_back(parameters[i]);

  const size_t elements = size_t(FlatParameters::count(ordered)) + StepTail::elements(communicator.size());
  REMUDA_ASSIGN(const std::span<std::byte> memory, communicator.allocate(elements * c10::elementSize(type)));
  std::unique_ptr<GradientReducer> reducer(
      new GradientReducer(communicator, std::move(ordered), as_tensor(memory, type), std::move(options)));
  REMUDA_TRY(communicator.broadcast(reducer->flat_.value_bytes(), 0, label::kValues));
  return reducer;
}

GradientReducer::GradientReducer(comm::Communicator& communicator, std::vector<torch::Tensor> parameters,
                                 torch::Tensor arena, ReducerOptions options)
    : communicator_(communicator),
      options_(std::move(options)),
      arena_(std::move(arena)),
      flat_(std::move(parameters), arena_),
      tail_(communicator.size()),
      self_(std::make_shared<GradientReducer*>(this)) {
  cut_buckets();
  add_hooks();
}

GradientReducer::~GradientReducer() { *self_ = nullptr; }

void GradientReducer::cut_buckets() {
  const double element = double(c10::elementSize(arena_.scalar_type()));
  int64_t begin = 0;
  for (size_t i = 0; i < flat_.parameters().size(); ++i) {
    const int64_t end = flat_.offsets()[i + 1];
    if (bucket_ends_.empty() || double(end - begin) * element > options_.bucket_bytes) {
      begin = flat_.offsets()[i];
      bucket_ends_.push_back(end);
      bucket_size_.push_back(0);
    }
    bucket_ends_.back() = end;
    bucket_of_.push_back(bucket_ends_.size() - 1);
    ++bucket_size_.back();
  }
  bucket_ends_.back() = arena_.numel();
}

void GradientReducer::add_hooks() {
  for (size_t i = 0; i < flat_.parameters().size(); ++i) {
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(flat_.parameters()[i]));
    add_post_accumulate_hook(accumulators_.back(), [self = self_, i] {
      if (*self) (*self)->on_ready(i);
    });
  }
}

void GradientReducer::begin(StepTail tail) {
  flat_.zero_gradient();
  tail_ = std::move(tail);
  bucket_missing_ = bucket_size_;
  ready_.assign(bucket_of_.size(), false);
  next_bucket_ = 0;
  armed_ = true;
}

void GradientReducer::on_ready(size_t parameter) {
  if (!armed_) return;
  if (!flat_.gradient_in_place(parameter)) add_status(kGradientMoved);
  if (ready_[parameter]) return add_status(kReadyTwice);
  ready_[parameter] = true;
  --bucket_missing_[bucket_of_[parameter]];
  while (next_bucket_ + 1 < buckets() && bucket_missing_[next_bucket_] == 0) launch_next();
}

void GradientReducer::launch_next() {
  options_.before_launch();
  const size_t bucket = next_bucket_++;
  const int64_t begin = bucket == 0 ? 0 : bucket_ends_[bucket - 1];
  const auto range = arena_.narrow(0, begin, bucket_ends_[bucket] - begin);
  AT_DISPATCH_FLOATING_TYPES(arena_.scalar_type(), "launch_next", [&] {
    const std::span values(range.data_ptr<scalar_t>(), size_t(range.numel()));
    queue_.push([this, values, bucket] { return communicator_.all_reduce(values, uint32_t(bucket)); });
  });
}

void GradientReducer::give_up(StepStatus why) {
  REMUDA_CHECK(armed_, "a step is under way");
  armed_ = false;
  tail_.weight = tail_.loss_sum = 0;
  add_status(why);
  const int64_t sent = next_bucket_ == 0 ? 0 : bucket_ends_[next_bucket_ - 1];
  arena_.narrow(0, sent, arena_.numel() - sent).zero_();
}

Result<ReducedStep> GradientReducer::finish() {
  armed_ = false;
  for (size_t i = 0; i < ready_.size(); ++i)
    if (!flat_.gradient_in_place(i)) add_status(kGradientMoved);
  while (next_bucket_ + 1 < buckets()) launch_next();
  write_tail();
  launch_next();
  const double start = monotonic_s();
  REMUDA_TRY(queue_.drain());
  wait_s_ = monotonic_s() - start;

  ReducedStep step{read_tail()};
  REMUDA_TRY(refuse_misuse(step.totals));
  auto gradient = flat_.values().grad();
  step.finite = std::isfinite(step.totals.loss_sum) && std::isfinite(gradient.sum().item<double>()) &&
                !(step.totals.any_status() & kOverflow);
  step.stands = step.finite && !(step.totals.any_status() & kOutOfMemory) && step.totals.weight > 0;
  if (step.stands) gradient.mul_(1.0 / step.totals.weight);
  return step;
}

void GradientReducer::write_tail() {
  const int64_t size = int64_t(StepTail::elements(communicator_.size()));
  const auto range = arena_.narrow(0, arena_.numel() - size, size);
  AT_DISPATCH_FLOATING_TYPES(arena_.scalar_type(), "write_tail",
                             [&] { write(tail_, std::span<scalar_t>(range.data_ptr<scalar_t>(), size_t(size))); });
}

StepTail GradientReducer::read_tail() const {
  const int64_t size = int64_t(StepTail::elements(communicator_.size()));
  const auto range = arena_.narrow(0, arena_.numel() - size, size);
  StepTail tail(communicator_.size());
  AT_DISPATCH_FLOATING_TYPES(arena_.scalar_type(), "read_tail", [&] {
    tail = read(std::span<const scalar_t>(range.data_ptr<scalar_t>(), size_t(size)), communicator_.size());
  });
  return tail;
}

Result<void> GradientReducer::check_parameters(int step) {
  const auto bytes = flat_.value_bytes();
  REMUDA_ASSIGN(const std::vector<uint64_t> hashes,
                gather(communicator_, XXH3_64bits(bytes.data(), bytes.size()), label::kHash));
  const size_t rank = first_that_differs(hashes);
  if (rank == 0) return {};
  REMUDA_ASSIGN(const std::string cause, cause_in_kernels(communicator_, arena_.device().type(), rank));
  return failed(difference(fmt::format("after step {} the parameters", step), hashes, rank) + ": " + cause);
}

}  // namespace remuda::train
