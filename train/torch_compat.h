// The differences between libtorch versions, all in one place. Sources compile from 1.13 to 2.x through this header.
#pragma once

#include <ATen/Context.h>
#include <functional>
#include <memory>
#include <string>
#include <torch/torch.h>
#include <torch/version.h>
#include <type_traits>
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

/// Has products of 16 bits added up in float32, in pieces too ("split-K"): libtorch allows cuBLAS less unless it is
/// told. Of bfloat16 only 2.0 and later can be told.
inline void add_up_in_float32(at::Context& context) {
  context.setAllowFP16ReductionCuBLAS(false);
  const auto same_of_bf16 = [](auto& own) {
    if constexpr (requires { own.setAllowBF16ReductionCuBLAS(false); }) own.setAllowBF16ReductionCuBLAS(false);
  };
  same_of_bf16(context);
}

/// Whether float16 may be added up in less. A bool; an enumeration from 2.9 on, whose first value says yes.
inline bool may_add_up_in_16_bits(const at::Context& context) {
  const auto says_yes = []<typename Allowed>(Allowed allowed) {
    if constexpr (std::is_same_v<Allowed, bool>)
      return allowed;
    else
      return allowed == Allowed{};
  };
  return says_yes(context.allowFP16ReductionCuBLAS());
}

/// Operators take kernels that give the same bits each time, and those that have none throw. Memory that is not
/// written yet stays as it is: libtorch would fill it since 2.2, for programs that read it all the same.
inline void set_deterministic(at::Context& context, bool on) {
  context.setDeterministicAlgorithms(on, /*warn_only=*/false);
  const auto leave_memory = [](auto& own) {
    if constexpr (requires { own.setDeterministicFillUninitializedMemory(false); })
      own.setDeterministicFillUninitializedMemory(false);
  };
  leave_memory(context);
}

/// softmax(q k^T / sqrt(d)) v over the positions up to one's own, by one operator of libtorch: since 2.0 a public one.
inline torch::Tensor fused_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true);
#else
  return std::get<0>(at::_scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                                       /*need_attn_weights=*/false, /*is_causal=*/true));
#endif
}

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
