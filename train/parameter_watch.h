// ParameterWatch: what a thread computes waits for parameters that are still on their way, each operator for those that
// it reads.
//
// So parameters arrive while a forward pass runs: it waits for no more than its first operators need, whatever the
// model. Operators are those that libtorch's dispatcher runs, of modules, functions and autograd functions in C++;
// TorchScript may fuse several into one that it does not report.
#pragma once

#include <ATen/record_function.h>
#include <functional>

#include "train/flat_layout.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// To be made and destroyed on one thread, one at a time. `values`, of which all parameters are views, and `layout`
/// outlive it.
class ParameterWatch {
 public:
  /// `take` is called before an operator that reads a parameter of this bucket; libtorch catches what it throws.
  ParameterWatch(const torch::Tensor& values, const FlatLayout& layout, std::function<void(size_t bucket)> take);
  ~ParameterWatch();
  ParameterWatch(const ParameterWatch&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> before(const at::RecordFunction& function);
  void look_at(const torch::Tensor& input) const;

  const c10::StorageImpl* const storage_;
  const FlatLayout& layout_;
  const std::function<void(size_t bucket)> take_;
  const at::CallbackHandle handle_;
};

}  // namespace remuda::train
