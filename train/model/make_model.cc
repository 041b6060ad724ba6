#include "train/model/make_model.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <span>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/script.h>
#include <unordered_map>
#include <unordered_set>

#include "train/error_text.h"
#include "train/model/batch_norm.h"
#include "train/model/native.h"
#include "train/model/script_norms.h"

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
  std::vector<NamedTensor> named_parameters() override { return named(module_->named_parameters()); }
  std::vector<NamedTensor> named_buffers() override { return named(module_->named_buffers()); }
  void set_training(bool training) override { module_->train(training); }
  void to(torch::ScalarType type) override { module_->to(type); }
  void to(torch::Device device) override { module_->to(device); }
  bool recompute_blocks(size_t count) override {
    module_->recompute_blocks(count);
    return true;
  }
  std::vector<std::vector<torch::Tensor>> blocks() override {
    std::vector<std::vector<torch::Tensor>> all;
    for (const auto& block : module_->blocks()) all.push_back(unique(block->parameters()));
    return all;
  }
  void watch_blocks(BlockWatch& watch) override { module_->watch_blocks(watch); }
  bool synchronize_norms(NormExchange& exchange) override {
    for (const auto& module : module_->modules())
      if (auto* norm = module->as<BatchNormImpl>()) norm->synchronize(exchange);
    return true;
  }
  std::vector<NormStatistics> norm_statistics() override {
    std::vector<NormStatistics> all;
    for (const auto& module : module_->modules())
      if (auto* norm = module->as<BatchNormImpl>(); norm && norm->running_mean.defined())
        all.push_back(norm->statistics());
    return all;
  }

 private:
  static std::vector<NamedTensor> named(const torch::OrderedDict<std::string, torch::Tensor>& tensors) {
    std::vector<NamedTensor> result;
    for (const auto& item : tensors) result.push_back({item.key(), item.value()});
    return result;
  }
  std::shared_ptr<TensorModule> module_;
};

/// Gives a tensor memory of its own on the CPU as long as this lives. A file holds the whole memory of which a tensor
/// is a part, and parameters are trained in one piece: Module::clone() and deepcopy() even take them for one tensor.
class OwnMemory {
 public:
  explicit OwnMemory(torch::Tensor tensor) : tensor_(std::move(tensor)), former_(tensor_.detach()) {
    tensor_.set_data(former_.clone().to(torch::kCPU));
  }
  OwnMemory(OwnMemory&&) = default;
  OwnMemory& operator=(OwnMemory&&) = delete;
  ~OwnMemory() {
    if (tensor_.defined()) tensor_.set_data(former_);
  }

 private:
  torch::Tensor tensor_, former_;
};

/// Some of the modules of a Sequential, one after another.
struct ScriptBlock {
  torch::IValue chain(torch::IValue x) const {
    for (torch::jit::Module module : modules) x = module.forward({x});
    return x;
  }
  torch::Tensor operator()(const torch::Tensor& input) const {
    const torch::IValue x = chain(input);
    if (!x.isTensor())
      throw std::runtime_error(
          fmt::format("a block that is to be recomputed or sharded gives a {}; it must give one tensor", x.tagKind()));
    return x.toTensor();
  }
  std::vector<torch::Tensor> buffers() const {
    std::vector<torch::Tensor> all;
    for (const auto& module : modules)
      for (const auto& buffer : module.buffers()) all.push_back(buffer);
    return all;
  }
  std::vector<torch::Tensor> parameters() const {
    std::vector<torch::Tensor> all;
    for (const auto& module : modules)
      for (const auto& parameter : module.parameters()) all.push_back(parameter);
    return all;
  }
  std::vector<torch::jit::Module> modules;
  std::vector<torch::Tensor> own;  ///< the parameters to train that no other block has
  bool shares = false;             ///< a parameter with another block
};

/// Says of each block which parameters are its own, and whether another one has others of it.
void find_shared(std::span<ScriptBlock> blocks) {
  std::unordered_map<at::TensorImpl*, int> users;
  for (const ScriptBlock& block : blocks)
    for (const auto& parameter : unique(block.parameters())) ++users[parameter.unsafeGetTensorImpl()];
  for (ScriptBlock& block : blocks) {
    const std::vector<torch::Tensor> all = unique(block.parameters());
    std::ranges::copy_if(all, std::back_inserter(block.own),
                         [&](const torch::Tensor& parameter) { return users[parameter.unsafeGetTensorImpl()] == 1; });
    block.shares = block.own.size() < all.size();
  }
}

/// By where its class is from: others are called Sequential, too, whose forward pass may be anything.
bool is_sequential(const torch::jit::Module& module) {
  const c10::QualifiedName& name = *module.type()->name();
  return name.name() == "Sequential" && name.prefix().starts_with("__torch__.torch.nn.modules.container");
}

/// Those of a Sequential: each of its modules that has parameters, and those without that follow it. None of others.
std::vector<ScriptBlock> blocks_of(const torch::jit::Module& module) {
  std::vector<ScriptBlock> blocks;
  if (!is_sequential(module)) return blocks;
  for (const auto& child : module.children()) {
    if (blocks.empty() || child.parameters().size() > 0) blocks.emplace_back();
    blocks.back().modules.push_back(child);
  }
  return blocks;
}

class ScriptModel final : public Model {
 public:
  explicit ScriptModel(const torch::jit::Module& module) : module_(module), blocks_(blocks_of(module)) {
    find_shared(blocks_);
  }
  torch::Tensor forward(const torch::Tensor& input) override {
    if (!watch_ && recomputed_ == 0) return module_.forward({input}).toTensor();
    torch::IValue x = input;
    size_t number = 0;  // of those that are watched
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (watch_ && !blocks_[i].own.empty())
        x = watched(*watch_, number++, [&, i](const torch::Tensor& in) { return run(i, in); }, x.toTensor());
      else
        x = i < recomputed_ ? run(i, x.toTensor()) : blocks_[i].chain(std::move(x));
    }
    return x.toTensor();
  }
  bool recompute_blocks(size_t count) override {
    recomputed_ = std::min(count, blocks_.size());
    return !blocks_.empty();
  }
  std::vector<std::vector<torch::Tensor>> blocks() override {
    std::vector<std::vector<torch::Tensor>> all;
    for (const ScriptBlock& block : blocks_)
      if (!block.own.empty()) all.push_back(block.own);
    return all;
  }
  void watch_blocks(BlockWatch& watch) override { watch_ = &watch; }
  std::vector<torch::Tensor> parameters() override { return unique(list(module_.parameters())); }
  std::vector<torch::Tensor> buffers() override { return list(module_.buffers()); }
  std::vector<NamedTensor> named_parameters() override { return named(module_.named_parameters()); }
  std::vector<NamedTensor> named_buffers() override { return named(module_.named_buffers()); }
  void set_training(bool training) override { module_.train(training); }
  void to(torch::ScalarType type) override { module_.to(type); }
  bool write_script(const WriteBytes& write) override {
    module_.eval();
    std::vector<OwnMemory> own;
    std::unordered_set<at::TensorImpl*> seen;
    for (const auto& all : {named(module_.named_parameters()), named(module_.named_buffers())})
      for (const NamedTensor& one : all)
        if (seen.insert(one.tensor.unsafeGetTensorImpl()).second) own.emplace_back(one.tensor);
    torch::jit::ExportModule(module_, write);
    return true;
  }
  void to(torch::Device device) override { module_.to(device); }
  std::vector<NormStatistics> norm_statistics() override { return script_norms(module_); }

 private:
  template <typename Tensors>
  static std::vector<NamedTensor> named(const Tensors& tensors) {
    std::vector<NamedTensor> result;
    for (const auto& item : tensors) result.push_back({item.name, item.value});
    return result;
  }
  template <typename Tensors>
  static std::vector<torch::Tensor> list(const Tensors& tensors) {
    std::vector<torch::Tensor> result;
    for (const auto& tensor : tensors) result.push_back(tensor);
    return result;
  }
  torch::Tensor run(size_t i, const torch::Tensor& input) const {
    const ScriptBlock& block = blocks_[i];
    if (i >= recomputed_) return block(input);
    return recomputed(
        block, input, [block] { return block.buffers(); },
        block.shares ? block.parameters() : std::vector<torch::Tensor>{});
  }

  torch::jit::Module module_;
  std::vector<ScriptBlock> blocks_;  ///< where it is a Sequential
  size_t recomputed_ = 0;            ///< so many of them, from the first on
  BlockWatch* watch_ = nullptr;
};

Result<std::unique_ptr<Model>> load_script(const std::string& path, const job::MemorySpec& memory,
                                           const job::EngineSpec& engine) {
  torch::jit::setTensorExprFuserEnabled(engine.script_fusers == job::Switch::on);
  try {
    auto model = std::make_unique<ScriptModel>(torch::jit::load(path));
    if (model->parameters().empty()) return usage_error(fmt::format("{} has no parameters to train", path));
    if (memory.recompute == job::Recompute::blocks && !model->recompute_blocks(blocks_to_recompute(memory)))
      return usage_error(
          fmt::format("memory.recompute = \"blocks\" is for models that are a torch.nn.Sequential, but {} is none: "
                      "leave the key out",
                      path));
    return model;
  } catch (const std::exception& error) {  // TorchScript's own are no c10::Error
    return usage_error(fmt::format("cannot load {} as a TorchScript model, with libtorch {}: {}", path, TORCH_VERSION,
                                   sentence_of(error)));
  }
}

}  // namespace

size_t blocks_to_recompute(const job::MemorySpec& memory) {
  return memory.recompute_blocks > 0 ? size_t(memory.recompute_blocks) : std::numeric_limits<size_t>::max();
}

Result<std::unique_ptr<Model>> make_model(const job::ModelSpec& spec, const ModelInput& input,
                                          const job::MemorySpec& memory, const job::EngineSpec& engine) {
  if (!spec.path.empty()) return load_script(spec.path, memory, engine);
  const bool fused = engine.fused_attention == job::Switch::on;
  std::shared_ptr<TensorModule> module;
  if (spec.name == "mlp") module = make_mlp(spec, input);
  if (spec.name == "resnet") module = make_resnet(spec, input);
  if (spec.name == "gpt") module = make_gpt(spec, input, fused);
  if (!module) return usage_error(fmt::format("unknown model '{}'; known are mlp, resnet and gpt", spec.name));
  if (memory.recompute == job::Recompute::blocks) module->recompute_blocks(blocks_to_recompute(memory));
  return std::make_unique<NativeModel>(std::move(module));
}

}  // namespace remuda::train
