#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <torch/csrc/autograd/engine.h>

#include "train/error_text.h"
#include "train/facts/fact.h"
#include "train/torch_compat.h"

namespace remuda::train::facts {
namespace {

torch::Tensor parameter(at::Device device) {
  return torch::ones({64, 64}, at::TensorOptions().device(device)).requires_grad_(true);
}

/// Runs backward through two parameters; `hook` runs when the gradient of either has been accumulated.
void backward(at::Device device, const std::function<void()>& hook) {
  const std::vector<torch::Tensor> parameters{parameter(device), parameter(device)};
  std::vector<GradAccumulator> accumulators;
  for (const auto& each : parameters) {
    accumulators.push_back(torch::autograd::impl::grad_accumulator(each));
    add_post_accumulate_hook(accumulators.back(), hook);
  }
  parameters[0].matmul(parameters[1]).sum().backward();
}

Answer hook_thread(at::Device device) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  int calls = 0;
  backward(device, [&] {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    ++calls;
  });
  if (calls != 2) return does_not_hold(fmt::format("{} calls for 2 parameters", calls));
  if (threads.size() != 1) return does_not_hold(fmt::format("hooks ran on {} threads", threads.size()));
  if (threads.contains(std::this_thread::get_id()))
    return does_not_hold("hooks ran on the thread that called backward()");
  return holds("2 hooks, both on one thread, which did not call backward()");
}

Answer hook_stream(at::Device device) {
  const Streams streams(device);
  const c10::Stream outside = streams.current(), forward = streams.another();
  std::mutex mutex;
  std::set<c10::StreamId> seen;
  {
    const c10::StreamGuard guard(forward);
    backward(device, [&] {
      const std::lock_guard lock(mutex);
      seen.insert(streams.current().id());
    });
  }
  if (seen == std::set{forward.id()})
    return holds("hooks have the stream on which their accumulator was made and forward ran");
  if (seen == std::set{outside.id()}) return does_not_hold("hooks have the default stream");
  return does_not_hold(fmt::format("hooks have {} streams", seen.size()));
}

/// The accumulator is made outside, as a reducer does before the first step, and forward runs on another stream.
Answer early_hook_stream(at::Device device) {
  const Streams streams(device);
  const c10::Stream outside = streams.current(), forward = streams.another();
  const torch::Tensor leaf = parameter(device);
  const GradAccumulator accumulator = torch::autograd::impl::grad_accumulator(leaf);
  std::optional<c10::Stream> seen;
  add_post_accumulate_hook(accumulator, [&] { seen = streams.current(); });
  {
    const c10::StreamGuard guard(forward);
    leaf.mul(2).sum().backward();
  }
  if (!seen) return does_not_hold("the hook did not run");
  if (*seen == outside) return holds("the hook has the stream on which the accumulator was made");
  if (*seen == forward) return holds("the hook has the stream of forward");
  return does_not_hold("the hook has neither the accumulator's stream nor that of forward");
}

Answer hook_exception(at::Device device) {
  struct Own : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  try {
    backward(device, [] { throw Own("from a hook"); });
  } catch (const Own& error) {
    return holds("with its type and text");
  } catch (const std::exception& error) {
    return does_not_hold(fmt::format("it lost its type: {}", sentence_of(error)));
  }
  return does_not_hold("backward() returned");
}

Answer final_callback(at::Device device) {
  std::mutex mutex;
  int hooks = 0, hooks_before = 0;
  std::thread::id thread;
  backward(device, [&] {
    const std::lock_guard lock(mutex);
    if (hooks++ > 0) return;
    torch::autograd::Engine::get_default_engine().queue_callback([&] {
      hooks_before = hooks;
      thread = std::this_thread::get_id();
    });
  });
  if (hooks_before != 2) return does_not_hold(fmt::format("it ran after {} of 2 hooks", hooks_before));
  return holds(thread == std::this_thread::get_id() ? "on the thread that called backward()"
                                                    : "on the device's thread");
}

/// Autocast on the device for the life of the guard. The type is set first: where it is refused, nothing is switched
/// on.
class Autocast {
 public:
  Autocast(at::Device device, at::ScalarType type) : device_(device.type()) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
    at::autocast::set_autocast_dtype(device_, type);
#else
    at::autocast::set_autocast_gpu_dtype(type);
#endif
    enable(true);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    enable(false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  void enable(bool on) const {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
    at::autocast::set_autocast_enabled(device_, on);
#else
    at::autocast::set_enabled(on);
#endif
  }
  c10::DeviceType device_;
};

Answer autocast(at::Device device, at::ScalarType type) {
  const torch::Tensor weight = parameter(device), input = torch::ones({64, 64}, at::TensorOptions().device(device));
  at::ScalarType product, norm;
  {
    const Autocast guard(device, type);
    const auto output = torch::linear(input, weight);
    product = output.scalar_type();
    const auto normed = torch::layer_norm(output, {64});
    norm = normed.scalar_type();
    (output + normed).sum().backward();
  }
  const std::string seen = fmt::format("linear gives {}, layer_norm {}, the gradient is {}", c10::toString(product),
                                       c10::toString(norm), c10::toString(weight.grad().scalar_type()));
  const bool right = product == type && norm == at::kFloat && weight.grad().scalar_type() == at::kFloat;
  return right ? holds(seen) : does_not_hold(seen);
}

}  // namespace

std::vector<Fact> backward_facts() {
  return {
      {"hook thread", "hooks after accumulation run on one thread, which is not backward()'s caller", hook_thread},
      {"hook stream", "in a hook, the current stream is that of forward", hook_stream},
      {"early hook stream", "with an accumulator made earlier, it is that stream or the one of forward",
       early_hook_stream},
      {"hook exception", "an exception in a hook leaves backward() in the caller", hook_exception},
      {"final callback", "a callback queued in a hook runs after all hooks, before backward() returns", final_callback},
      {"autocast bf16", "linear computes in bfloat16, layer_norm and gradients stay float32",
       [](at::Device device) { return autocast(device, at::kBFloat16); }},
      {"autocast fp16", "linear computes in half, layer_norm and gradients stay float32",
       [](at::Device device) { return autocast(device, at::kHalf); }},
  };
}

}  // namespace remuda::train::facts
