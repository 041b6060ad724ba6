#include "train/parameter_watch.h"

#include <utility>

namespace remuda::train {
namespace {

thread_local const ParameterWatch* t_watch = nullptr;

}  // namespace

ParameterWatch::ParameterWatch(const torch::Tensor& values, const FlatLayout& layout,
                               std::function<void(size_t bucket)> take)
    : storage_(values.storage().unsafeGetStorageImpl()),
      layout_(layout),
      take_(std::move(take)),
      handle_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(before).needsInputs(true).scopes({at::RecordScope::FUNCTION}))) {
  t_watch = this;
}

ParameterWatch::~ParameterWatch() {
  t_watch = nullptr;
  at::removeCallback(handle_);
}

std::unique_ptr<at::ObserverContext> ParameterWatch::before(const at::RecordFunction& function) {
  const ParameterWatch* const watch = std::exchange(t_watch, nullptr);  // what it does itself is not looked at
  if (!watch) return nullptr;
  for (const c10::IValue& input : function.inputs()) {
    if (input.isTensor()) watch->look_at(input.toTensor());
    if (!input.isTensorList()) continue;
    for (const torch::Tensor& one : input.toTensorVector()) watch->look_at(one);
  }
  t_watch = watch;
  return nullptr;
}

/// A parameter, or a view of one: none has a part of another.
void ParameterWatch::look_at(const torch::Tensor& input) const {
  if (!input.defined() || !input.has_storage() || input.storage().unsafeGetStorageImpl() != storage_) return;
  if (input.numel() > 0) take_(layout_.bucket_at(size_t(input.storage_offset())));
}

}  // namespace remuda::train
