#include <algorithm>
#include <c10/core/Event.h>
#include <chrono>
#include <fmt/format.h>
#include <functional>

#if __has_include(<ATen/DeviceAccelerator.h>)
#include <ATen/DeviceAccelerator.h>
#endif

#include "base/clock.h"
#include "train/device/device_timer.h"
#include "train/facts/fact.h"
#include "train/torch_compat.h"

namespace remuda::train::facts {
namespace {

constexpr int64_t kSide = 4096;
constexpr int kProducts = 30;
constexpr int kCopies = 8;

at::TensorOptions on(at::Device device) { return at::TensorOptions().device(device); }

/// How many elements of the gradient a copy that a hook queues on another stream has missed.
int64_t missed_elements(at::Device device, bool wait_for_event) {
  const Streams streams(device);
  const c10::Stream other = streams.another();
  const auto identity = torch::eye(kSide, on(device));
  auto leaf = torch::zeros({kSide, kSide}, on(device)).requires_grad_(true);
  leaf.mutable_grad() = torch::zeros({kSide, kSide}, on(device));
  const auto copy = torch::zeros({kSide, kSide}, on(device));
  const GradAccumulator accumulator = torch::autograd::impl::grad_accumulator(leaf);
  add_post_accumulate_hook(accumulator, [&] {
    c10::Event accumulated(device.type());
    accumulated.record(streams.current());
    if (wait_for_event) accumulated.block(other);
    const c10::StreamGuard guard(other);
    const torch::NoGradGuard no_grad;
    copy.copy_(leaf.grad(), true);
  });
  torch::Tensor x = leaf;
  for (int i = 0; i < kProducts; ++i) x = x.matmul(identity);
  const auto sum = x.sum();
  streams.wait();
  sum.backward();
  streams.wait(other);
  streams.wait();
  return (copy != 1).sum().item<int64_t>();
}

/// With the event first: the first use of a kernel loads it, for which a driver may wait until the device is idle.
Answer event_order(at::Device device) {
  constexpr int kTries = 3;
  const int64_t with = missed_elements(device, true);
  int64_t without = 0;
  for (int i = 0; i < kTries && without == 0; ++i) without = missed_elements(device, false);
  const std::string seen =
      fmt::format("of {} elements, the copy missed {} with the event and {} without", kSide * kSide, with, without);
  if (with != 0) return does_not_hold(seen);
  return without != 0 ? holds(seen) : cannot_be_asked(seen + ": backward was too quick to prove anything");
}

Answer event_interface(at::Device device) {
  const Streams streams(device);
  const Work work(device);
  streams.wait();
  c10::Event event(device.type());
  const auto result = work.queue();
  event.record(streams.current());
  if (event.query()) return does_not_hold("an event behind queued work says that it has happened");
  auto wait = [&](auto& waited) {
    if constexpr (requires { waited.synchronize(); }) {
      waited.synchronize();
      return "synchronize() waits for it";
    }
    streams.wait();
    return "there is no synchronize() in this version";
  };
  const char* how = wait(event);
  if (!event.query()) return does_not_hold("an event says that it has not happened after it was waited for");
  return holds(fmt::format("query() is false, then true; {}", how));
}

double ms_of(const std::function<void()>& queue, const Streams& streams, const c10::Stream& other) {
  const auto start = std::chrono::steady_clock::now();
  queue();
  streams.wait();
  streams.wait(other);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Answer overlap(at::Device device) {
  const Streams streams(device);
  const c10::Stream other = streams.another();
  const Work work(device);
  const auto host = torch::empty({1 << 28}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  const auto there = torch::empty({1 << 28}, on(device).dtype(at::kByte));
  const auto compute = [&] { (void)work.queue(); };
  const auto copy = [&] {
    const c10::StreamGuard guard(other);
    for (int i = 0; i < kCopies; ++i) there.copy_(host, true);
  };
  const auto both = [&] { compute(), copy(); };
  both();
  streams.wait();
  streams.wait(other);
  const double compute_ms = ms_of(compute, streams, other), copy_ms = ms_of(copy, streams, other),
               both_ms = ms_of(both, streams, other);
  const double hidden = (compute_ms + copy_ms - both_ms) / std::min(compute_ms, copy_ms);
  return holds(
      fmt::format("compute {:.1f} ms, copies of 2 GiB {:.1f} ms, both {:.1f} ms: {:.0f} % of the shorter is hidden",
                  compute_ms, copy_ms, both_ms, 100 * hidden));
}

/// More than any other fact leaves in the allocator's cache: a block of this size, once freed, is the only one.
constexpr int64_t kBlockBytes = int64_t{768} << 20;

/// Is a block that is freed while another stream works on it given out again?
Answer reuse(at::Device device, bool tell, std::string& seen) {
  const Streams streams(device);
  const c10::Stream other = streams.another();
  const auto make = [&] { return torch::empty({kBlockBytes}, on(device).dtype(at::kByte)); };
  const Work work(device);
  auto block = make();
  block.zero_();
  streams.wait();
  const void* place = block.data_ptr();
  {
    const c10::StreamGuard guard(other);
    const auto result = work.queue();
    block.fill_(1);
    if (tell) streams.used_on(block, other);
  }
  block.reset();
  const auto next = make();
  const bool again = next.data_ptr() == place, busy = !streams.idle(other);
  streams.wait(other);
  seen +=
      fmt::format("{} record_stream the block is given out {}", tell ? "with" : "without", again ? "at once" : "later");
  if (!busy) return cannot_be_asked("the other stream was done too early");
  return again != tell ? holds(seen) : does_not_hold(seen);
}

Answer record_stream(at::Device device) {
  std::string seen;
  const Answer without = reuse(device, false, seen);
  if (without.kind != Answer::Kind::holds) return cannot_be_asked(without.seen);
  seen += ", ";
  return reuse(device, true, seen);
}

Answer device_timer(at::Device device) {
  const auto timer = DeviceTimer::of(device);
  if (!timer) return does_not_hold("there is no timer for it");
  const Work work(device);
  const DeviceTimer::Mark from = timer->mark();
  const double start = monotonic_s();
  (void)work.queue();
  const double given_s = monotonic_s() - start;
  const DeviceTimer::Mark to = timer->mark();
  const double took_s = timer->seconds(from, to), waited_s = monotonic_s() - start;
  const std::string seen =
      fmt::format("{:.2f} ms by the device's events; {:.2f} ms to give it the work, {:.2f} ms until it was done",
                  1e3 * took_s, 1e3 * given_s, 1e3 * waited_s);
  return took_s > 0 && took_s <= waited_s ? holds(seen) : does_not_hold(seen);
}

Answer accelerator([[maybe_unused]] at::Device device) {
#if __has_include(<ATen/DeviceAccelerator.h>)
  const auto type = at::getAccelerator(false);
  if (type == device.type()) return holds(fmt::format("it is {}", c10::DeviceTypeName(*type, true)));
  return does_not_hold(type ? fmt::format("it is {}", c10::DeviceTypeName(*type, true)) : "it names none");
#else
  return cannot_be_asked("this libtorch has no at::getAccelerator");
#endif
}

}  // namespace

Work::Work(at::Device device) : matrix_(torch::eye(kSide, on(device))) {}

torch::Tensor Work::queue() const {
  auto x = matrix_;
  for (int i = 0; i < kProducts; ++i) x = x.matmul(matrix_);
  return x;
}

std::vector<Fact> stream_facts() {
  return {
      {"event order", "an event recorded in a hook orders a copy on another stream after the gradient", event_order},
      {"event interface", "c10::Event tells whether queued work is done, and can be waited for", event_interface},
      {"overlap", "copies from pinned memory run beside compute (measured, not judged)", overlap},
      {"record stream", "memory that another stream uses is not given out again once the allocator was told",
       record_stream},
      {"device timer", "events of libtorch's profiler measure the device's time for the work between them",
       device_timer},
      {"accelerator", "at::getAccelerator names the device's type", accelerator},
  };
}

}  // namespace remuda::train::facts
