#include "train/model/make_model.h"

#include <fmt/format.h>
#include <torch/script.h>
#include <unordered_set>

#include "train/model/native.h"

namespace remuda::train {
namespace {

/// Tied weights are one tensor under two names: keep the first of each.
std::vector<torch::Tensor> unique(const std::vector<torch::Tensor>& tensors) {
  std::unordered_set<at::TensorImpl*> seen;
  std::vector<torch::Tensor> kept;
  for (const auto& tensor : tensors)
    if (tensor.requires_grad() && seen.insert(tensor.unsafeGetTensorImpl()).second) kept.push_back(tensor);
  return kept;
}

class NativeModel final : public Model {
 public:
  explicit NativeModel(std::shared_ptr<TensorModule> module) : module_(std::move(module)) {}
  torch::Tensor forward(const torch::Tensor& input) override { return module_->forward(input); }
  std::vector<torch::Tensor> parameters() override { return unique(module_->parameters()); }
  std::vector<torch::Tensor> buffers() override { return module_->buffers(); }
  void set_training(bool training) override { module_->train(training); }
  void to(torch::ScalarType type) override { module_->to(type); }

 private:
  std::shared_ptr<TensorModule> module_;
};

class ScriptModel final : public Model {
 public:
  explicit ScriptModel(const torch::jit::Module& module) : module_(module) {}
  torch::Tensor forward(const torch::Tensor& input) override { return module_.forward({input}).toTensor(); }
  std::vector<torch::Tensor> parameters() override { return unique(list(module_.parameters())); }
  std::vector<torch::Tensor> buffers() override { return list(module_.buffers()); }
  void set_training(bool training) override { module_.train(training); }
  void to(torch::ScalarType type) override { module_.to(type); }

 private:
  template <typename Tensors>
  static std::vector<torch::Tensor> list(const Tensors& tensors) {
    std::vector<torch::Tensor> result;
    for (const auto& tensor : tensors) result.push_back(tensor);
    return result;
  }
  torch::jit::Module module_;
};

Result<std::unique_ptr<Model>> load_script(const std::string& path) {
  try {
    auto model = std::make_unique<ScriptModel>(torch::jit::load(path));
    if (model->parameters().empty()) return usage_error(fmt::format("{} has no parameters to train", path));
    return model;
  } catch (const c10::Error& error) {
    return usage_error(fmt::format("cannot load {} as a TorchScript model: {}", path, first_line(error)));
  }
}

}  // namespace

Result<std::unique_ptr<Model>> make_model(const job::ModelSpec& spec, const ModelInput& input) {
  if (!spec.path.empty()) return load_script(spec.path);
  std::shared_ptr<TensorModule> module;
  if (spec.name == "mlp") module = make_mlp(spec, input);
  if (spec.name == "resnet") module = make_resnet(spec, input);
  if (spec.name == "gpt") module = make_gpt(spec, input);
  if (!module) return usage_error(fmt::format("unknown model '{}'; known are mlp, resnet and gpt", spec.name));
  return std::make_unique<NativeModel>(std::move(module));
}

}  // namespace remuda::train
