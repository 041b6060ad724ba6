// The differences between libtorch versions, all in one place. Sources compile from 1.13 to 2.x through this header.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <torch/torch.h>
#include <torch/version.h>
#if __has_include(<torch/csrc/profiler/stubs/base.h>)
#include <torch/csrc/profiler/stubs/base.h>
#else  // 1.13
#include <torch/csrc/profiler/api.h>
#endif

namespace remuda::train {

/// Comparable version of the libtorch built against, e.g. 113 for 1.13, 206 for 2.6. The patch number is left out:
/// Debian's 1.13.1 calls itself 1.13.0.
inline constexpr int kTorchVersion = TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR;

/// The node that accumulates a leaf's gradient. 1.13 and 2.6 return shared_ptr, 2.14 intrusive_ptr. Keep it alive as
/// long as its hooks are needed: the tensor itself holds it weakly.
using GradAccumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

/// Calls `after` each time the gradient of the accumulator's tensor has been accumulated in full, on the thread that
/// runs the backward pass. An exception it throws leaves backward().
inline void add_post_accumulate_hook(const GradAccumulator& accumulator, std::function<void()> after) {
  struct Hook final : torch::autograd::FunctionPostHook {
    explicit Hook(std::function<void()> f) : after_(std::move(f)) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                              const torch::autograd::variable_list& gradients) override {
      if (gradients.empty() || gradients[0].defined()) after_();
      return outputs;
    }
    std::function<void()> after_;
  };
  accumulator->add_post_hook(std::make_unique<Hook>(std::move(after)));
}

/// What a maker's library offers libtorch's profiler: events with times, and ranges. The types of an event and of a
/// device's number are other ones in each version.
using torch::profiler::impl::ProfilerStubs;
template <typename Call>
struct TimedEvent;
template <typename DeviceIndex, typename Event>
struct TimedEvent<void (ProfilerStubs::*)(DeviceIndex*, Event*, int64_t*) const> {
  using Index = DeviceIndex;
  using Pointer = Event;  ///< a shared_ptr
};
using DeviceEvent = TimedEvent<decltype(&ProfilerStubs::record)>;

/// "Float of shape [1, 4]".
std::string shape_text(const torch::Tensor& tensor);

/// Did an allocation fail? CUDA throws c10::OutOfMemoryError; a CPU allocation that fails is a plain c10::Error that
/// names its allocator, and one of a maker's library one that has the library's status as text. TorchScript's
/// interpreter turns any of them into a std::runtime_error, which keeps the text.
bool is_out_of_memory(const std::exception& error);

/// The kernels that compute a rank's update, as in "cpu, AVX512, libtorch 1.13.0": the type of device, the variant of
/// libtorch's CPU kernels, and the version. Ranks that differ in it round differently.
std::string kernels_of(torch::DeviceType device);

}  // namespace remuda::train
