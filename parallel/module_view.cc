#include "parallel/module_view.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_set>

#include "base/file.h"
#include "parallel/raise.h"
#include "train/weights.h"

namespace remuda::parallel {
namespace {

using train::NamedTensor;

std::vector<NamedTensor> named(const torch::OrderedDict<std::string, torch::Tensor>& tensors) {
  std::vector<NamedTensor> result;
  for (const auto& item : tensors) result.push_back({item.key(), item.value()});
  return result;
}

template <typename ScriptTensors>
std::vector<NamedTensor> named(const ScriptTensors& tensors) {
  std::vector<NamedTensor> result;
  for (const auto& item : tensors) result.push_back({item.name, item.value});
  return result;
}

void save(const ModuleView& view, const std::string& path) {
  constexpr int kStepsNotKnown = -1;
  or_raise(train::write_weights(view.all(), or_raise(PendingFile::create(path)), kStepsNotKnown, [] {}));
}

}  // namespace

ModuleView view_of(const torch::nn::Module& module) {
  return {[&module] { return named(module.named_parameters()); }, [&module] { return named(module.named_buffers()); }};
}

/// A handle: it refers to the same module.
ModuleView view_of(const torch::jit::Module& module) {
  return {[module] { return named(module.named_parameters()); }, [module] { return named(module.named_buffers()); }};
}

std::vector<NamedTensor> ModuleView::trained() const {
  std::unordered_set<const at::TensorImpl*> known;
  std::vector<NamedTensor> result;
  for (NamedTensor& one : parameters())
    if (one.tensor.requires_grad() && known.insert(one.tensor.unsafeGetTensorImpl()).second)
      result.push_back(std::move(one));
  return result;
}

std::vector<NamedTensor> ModuleView::all() const {
  std::vector<NamedTensor> result = parameters();
  for (NamedTensor& buffer : buffers()) result.push_back(std::move(buffer));
  return result;
}

ModuleWatch::ModuleWatch(ModuleView view) : view_(std::move(view)) {
  for (const NamedTensor& one : view_.trained())
    seen_.push_back({one.name, one.tensor, one.tensor.data_ptr(), one.tensor.scalar_type(), one.tensor.device()});
}

std::string ModuleWatch::change() const {
  const std::vector<NamedTensor> now = view_.trained();
  for (const Seen& seen : seen_) {
    const auto same_name = std::ranges::find(now, seen.name, &NamedTensor::name);
    if (same_name == now.end())
      return fmt::format("{} {}", seen.name, seen.tensor.requires_grad() ? "is gone" : "requires no gradient any more");
    if (!same_name->tensor.is_same(seen.tensor)) return fmt::format("{} was replaced", seen.name);
    if (seen.tensor.scalar_type() != seen.type)
      return fmt::format("{} was {} and is {}", seen.name, toString(seen.type), toString(seen.tensor.scalar_type()));
    if (seen.tensor.device() != seen.device)
      return fmt::format("{} was on {} and is on {}", seen.name, seen.device.str(), seen.tensor.device().str());
    if (seen.tensor.data_ptr() != seen.memory)
      return fmt::format("{} was given other memory, as by set_data() or to()", seen.name);
  }
  for (const NamedTensor& one : now)
    if (std::ranges::find(seen_, one.name, &Seen::name) == seen_.end())
      return fmt::format("{} was added, or requires a gradient now", one.name);
  return "";
}

std::vector<torch::Tensor> ModuleWatch::where(bool unmoved) const {
  std::vector<torch::Tensor> result;
  for (const Seen& seen : seen_)
    if ((seen.tensor.data_ptr() == seen.memory) == unmoved) result.push_back(seen.tensor);
  return result;
}

void load_weights(torch::nn::Module& module, const std::string& path) {
  or_raise(train::load_weights(view_of(module).all(), path));
}
void load_weights(torch::jit::Module& module, const std::string& path) {
  or_raise(train::load_weights(view_of(module).all(), path));
}
void save_weights(const torch::nn::Module& module, const std::string& path) { save(view_of(module), path); }
void save_weights(const torch::jit::Module& module, const std::string& path) { save(view_of(module), path); }

}  // namespace remuda::parallel
