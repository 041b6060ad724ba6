// What the stand-in computes: libtorch's operators for XPU tensors, by its CPU kernels on the same memory.
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <cstring>
#include <torch/library.h>
#include <torch/torch.h>
#include <torch/version.h>

#include "train/testing/standin/device.h"

namespace remuda::train::testing {
namespace {

using torch::jit::Stack;

Device& owner_of(const at::Tensor& tensor) { return Device::get(tensor.device().index()); }

/// A CPU tensor over the same memory, which may be used in the device's streams only.
at::Tensor on_host(const at::Tensor& tensor) {
  const auto options = at::TensorOptions().dtype(tensor.scalar_type());
  if (tensor.numel() == 0) return at::empty(tensor.sizes(), options);  // an output that is to be given its size
  return at::from_blob(real(tensor.data_ptr()), tensor.sizes(), tensor.strides(), options);
}

/// Runs in a stream: what fails there is thrown by a later call.
void push(Device& device, std::function<void()> task) {
  device.stream(current_stream(current_device())).push([&device, task = std::move(task)] {
    const c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset);
    const at::NoGradGuard no_grad;
    try {
      task();
    } catch (const std::exception& error) {
      device.fail(error.what());
    }
  });
}

class WithDevice {
 public:
  explicit WithDevice(int device) : before_(current_device()) { set_current_device(device); }
  ~WithDevice() { set_current_device(before_); }

 private:
  int before_;
};

at::Tensor make_empty(at::IntArrayRef sizes, int device, at::ScalarType type) {
  const WithDevice with(device);
  return at::detail::empty_generic(sizes, &allocator(), c10::DispatchKeySet(c10::DispatchKey::XPU), type, c10::nullopt);
}

at::Tensor empty(at::IntArrayRef sizes, c10::optional<at::ScalarType> type, c10::optional<at::Layout>,
                 c10::optional<at::Device> device, c10::optional<bool>, c10::optional<at::MemoryFormat>) {
  const int index = device && device->has_index() ? device->index() : current_device();
  return make_empty(sizes, index, type.value_or(at::kFloat));
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, c10::optional<at::ScalarType> type,
                         c10::optional<at::Layout>, c10::optional<at::Device> device, c10::optional<bool>) {
  const WithDevice with(device && device->has_index() ? device->index() : current_device());
  return at::detail::empty_strided_generic(sizes, strides, &allocator(), c10::DispatchKeySet(c10::DispatchKey::XPU),
                                           type.value_or(at::kFloat));
}

void poison(const at::Tensor& host) {
  if (host.is_contiguous() && host.numel() > 0) std::memset(host.data_ptr(), 0xff, host.nbytes());
}

/// Between host and device, or on the device; queued in the current stream.
at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const bool to_host = to.is_cpu(), from_host = from.is_cpu();
  Device& device = owner_of(to_host ? from : to);
  device.check();
  const WithDevice with(to_host ? from.device().index() : to.device().index());
  if (to_host && device.copies_from_host == 0) poison(to);
  if (from_host) ++device.copies_from_host;
  push(device, [&device, from_host, source = from_host ? from : on_host(from), target = to_host ? to : on_host(to)] {
    target.copy_(source);
    if (from_host) --device.copies_from_host;
  });
  if (non_blocking || (!to_host && !from_host)) return to;
  device.stream(current_stream(current_device())).drain();
  device.check();
  return to;
}

at::Scalar local_scalar(const at::Tensor& tensor) {
  Device& device = owner_of(tensor);
  const WithDevice with(tensor.device().index());
  device.stream(current_stream(current_device())).drain();
  device.check();
  return on_host(tensor).item();
}

const at::Tensor& resize_to(const at::Tensor& tensor, at::IntArrayRef sizes, c10::optional<at::MemoryFormat>) {
  const at::Tensor larger = make_empty(sizes, tensor.device().index(), tensor.scalar_type());
  const_cast<at::Tensor&>(tensor).set_(larger);
  return tensor;  // NOLINT(bugprone-return-const-ref-from-parameter): the operator's own form
}

at::Tensor& set_storage(at::Tensor& tensor, const at::Tensor& source) {
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(source.storage());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(source.sizes(), source.strides());
  tensor.unsafeGetTensorImpl()->set_storage_offset(source.storage_offset());
  return tensor;
}

/// The arguments of a call, with host tensors in place of the device's.
class Call {
 public:
  Call(const c10::OperatorHandle& op, Stack& stack) : count_(op.schema().arguments().size()) {
    for (size_t i = stack.size() - count_; i < stack.size(); ++i) arguments_.push_back(convert(stack[i]));
  }

  Stack arguments() const { return arguments_; }
  int device() const { return device_ >= 0 ? device_ : current_device(); }
  size_t count() const { return count_; }

  /// The device's tensor for one that a kernel returned: the argument it is, or a new one with a copy of it.
  at::Tensor back(const at::Tensor& host) const {
    if (!host.defined()) return host;
    for (const auto& [alias, original] : tensors_) {
      if (!alias.is_same(host)) continue;
      if (host.numel() == original.numel()) return original;
      return fill(resize_to(original, host.sizes(), c10::nullopt), host);
    }
    return fill(make_empty(host.sizes(), device(), host.scalar_type()), host);
  }

 private:
  at::Tensor fill(const at::Tensor& target, const at::Tensor& host) const {
    const WithDevice with(device());
    if (host.numel() > 0) push(Device::get(device()), [host, to = on_host(target)] { to.copy_(host); });
    return target;
  }

  at::Tensor convert(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_xpu()) return tensor;
    device_ = tensor.device().index();
    tensors_.emplace_back(on_host(tensor), tensor);
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
      tensors_.back().first.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensors_.back().first;
  }

  c10::IValue convert(const c10::IValue& value) {
    if (value.isTensor()) return convert(value.toTensor());
    if (value.isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(convert(tensor));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<c10::optional<at::Tensor>> list;
      for (const c10::optional<at::Tensor> tensor : value.toOptionalTensorList())
        list.push_back(tensor ? c10::optional<at::Tensor>(convert(*tensor)) : c10::nullopt);
      return list;
    }
    if (value.isDevice() && value.toDevice().is_xpu()) {
      device_ = value.toDevice().has_index() ? value.toDevice().index() : current_device();
      return c10::Device(c10::kCPU);
    }
    return value;
  }

  size_t count_;
  Stack arguments_;
  std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;  ///< the host's alias, the device's own
  int device_ = -1;
};

bool writes(const c10::Argument& argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

/// In place: what is returned is known before it is computed. So are operations whose output is their first argument,
/// which is what libtorch makes of many that are called in place, and norms whose output has its shape.
bool is_in_place(const c10::FunctionSchema& schema, const Stack& stack) {
  const auto& arguments = schema.arguments();
  if (schema.name() == "aten::linalg_vector_norm" && schema.overload_name() == "out") return true;
  if (arguments.empty() || schema.returns().size() > 1) return false;
  if (writes(arguments.front())) return schema.name().ends_with("_") && !schema.name().ends_with("__");
  const c10::IValue &first = stack[stack.size() - arguments.size()], &last = stack.back();
  return writes(arguments.back()) && arguments.size() > 1 && first.isTensor() && last.isTensor() &&
         first.toTensor().is_same(last.toTensor());
}

c10::OperatorHandle find(const char* name) { return c10::Dispatcher::singleton().findSchemaOrThrow(name, ""); }

/// The CPU's operator for one that other devices bring their own of; the arguments are changed to suit it.
c10::OperatorHandle on_cpu(const c10::OperatorHandle& op, Stack& arguments) {
  const std::string& name = op.schema().name();
  if (name == "aten::convolution_overrideable") return find("aten::convolution");
  if (name == "aten::convolution_backward_overrideable") {
    const at::Tensor weight = arguments[2].toTensor();
    const bool transposed = arguments[6].toBool();
    const int64_t outputs = transposed ? weight.size(1) * arguments[8].toInt() : weight.size(0);
    arguments.insert(arguments.begin() + 3, c10::IValue(std::vector<int64_t>{outputs}));
    return find("aten::convolution_backward");
  }
  return op;
}

void compute(const c10::OperatorHandle& op, Stack* stack) {
  Call call(op, *stack);
  Device& device = Device::get(call.device());
  device.check();
  const WithDevice with(call.device());
  if (is_in_place(op.schema(), *stack)) {
    const bool returns = !op.schema().returns().empty();
    const bool last = writes(op.schema().arguments().back());
    const c10::IValue self = last ? stack->back() : (*stack)[stack->size() - call.count()];
    push(device, [op, arguments = call.arguments()]() mutable { op.callBoxed(arguments); });
    torch::jit::drop(*stack, call.count());
    if (returns) stack->push_back(self);
    return;
  }
  device.stream(current_stream(call.device())).drain();
  device.check();
  Stack arguments = call.arguments();
  on_cpu(op, arguments).callBoxed(arguments);
  torch::jit::drop(*stack, call.count());
  for (const c10::IValue& result : arguments) {
    if (result.isTensor()) {
      stack->emplace_back(call.back(result.toTensor()));
    } else if (result.isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& tensor : result.toTensorVector()) list.push_back(call.back(tensor));
      stack->emplace_back(list);
    } else {
      stack->push_back(result);
    }
  }
}

TORCH_LIBRARY_IMPL(aten, XPU, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("copy_", copy);
  library.impl("_local_scalar_dense", local_scalar);
  library.impl("resize_", resize_to);
  library.impl("set_.source_Tensor", set_storage);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&compute>());
  library.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&compute>());
}

// Before 2.4 a device of this type brings its own casts; after it, libtorch has them.
#if TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 4)

at::Tensor cast(const at::Tensor& tensor) {
  return at::autocast::cached_cast(at::autocast::get_autocast_xpu_dtype(), tensor, c10::kXPU);
}

at::Tensor short_linear(const at::Tensor& input, const at::Tensor& weight, const c10::optional<at::Tensor>& bias) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastXPU);
  return at::linear(cast(input), cast(weight), bias ? c10::optional<at::Tensor>(cast(*bias)) : c10::nullopt);
}

at::Tensor short_matmul(const at::Tensor& a, const at::Tensor& b) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastXPU);
  return at::matmul(cast(a), cast(b));
}

TORCH_LIBRARY_IMPL(_, AutocastXPU, library) { library.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastXPU, library) {
  library.impl("linear", short_linear);
  library.impl("matmul", short_matmul);
}

#endif

TORCH_LIBRARY_IMPL(_, XPU, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute>()); }

}  // namespace
}  // namespace remuda::train::testing
