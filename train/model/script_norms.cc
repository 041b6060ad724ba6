#include "train/model/script_norms.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <unordered_map>

namespace remuda::train {
namespace {

using torch::jit::Module;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = c10::prim;

/// The attribute of the model that a value of its inlined program is; nothing where it is none.
std::optional<c10::IValue> attribute_of(const Value* value, const Value* self, const Module& model) {
  std::vector<std::string> names;
  for (; value != self; value = value->node()->input(0)) {
    if (value->node()->kind() != prim::GetAttr) return std::nullopt;
    names.push_back(value->node()->s(c10::attr::name));
  }
  c10::IValue at = model._ivalue();
  for (; !names.empty(); names.pop_back()) {
    if (!at.isObject() || !at.toObject()->type()->hasAttribute(names.back())) return std::nullopt;
    at = at.toObject()->getAttr(names.back());
  }
  return at;
}

/// What the program gives torch.batch_norm, by the buffer that it gives it for the mean.
class Program {
 public:
  explicit Program(const Module& model) : model_(model) {
    const auto method = model.find_method("forward");
    if (!method) return;
    const std::shared_ptr<torch::jit::Graph> graph = method->graph()->copy();
    torch::jit::Inline(*graph);
    self_ = graph->inputs().at(0);
    read(graph->block());
  }

  std::optional<double> momentum_of(const torch::Tensor& mean) const {
    const auto found = momentums_.find(mean.unsafeGetTensorImpl());
    return found == momentums_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void read(const torch::jit::Block* block) {
    constexpr size_t kMean = 3, kMomentum = 6;
    for (const Node* node : block->nodes()) {
      for (const torch::jit::Block* inner : node->blocks()) read(inner);
      if (node->kind() != c10::Symbol::fromQualString("aten::batch_norm")) continue;
      const auto momentum = torch::jit::toIValue(node->input(kMomentum));
      const auto mean = attribute_of(node->input(kMean), self_, model_);
      if (momentum && momentum->isDouble() && mean && mean->isTensor())
        momentums_.emplace(mean->toTensor().unsafeGetTensorImpl(), momentum->toDouble());
    }
  }

  const Module& model_;
  const Value* self_ = nullptr;
  std::unordered_map<const at::TensorImpl*, double> momentums_;
};

std::optional<c10::IValue> attribute(const Module& module, const std::string& name) {
  const auto type = module._ivalue()->type();
  if (!type->hasAttribute(name) && !type->findConstantSlot(name)) return std::nullopt;
  return module.attr(name);
}

torch::Tensor buffer_of(const Module& module, const std::string& name) {
  const auto value = attribute(module, name);
  return value && value->isTensor() ? value->toTensor() : torch::Tensor();
}

/// Whether it is a module of PyTorch's own, so that its momentum is what it says: others give the word other meanings.
bool is_of_pytorch(const Module& module) {
  const auto name = module.type()->name();
  const std::string text = name ? name->qualifiedName() : "";
  return text.starts_with("__torch__.torch.nn.modules.batchnorm.") ||
         text.starts_with("__torch__.torch.nn.modules.instancenorm.");
}

}  // namespace

std::vector<NormStatistics> script_norms(const Module& model) {
  std::vector<NormStatistics> all;
  std::optional<Program> program;
  for (const Module& module : model.modules()) {
    NormStatistics norm{.mean = buffer_of(module, "running_mean"),
                        .variance = buffer_of(module, "running_var"),
                        .batches = buffer_of(module, "num_batches_tracked"),
                        .momentum = {}};
    if (!norm.mean.defined() || !norm.variance.defined()) continue;
    const auto own = is_of_pytorch(module) ? attribute(module, "momentum") : std::nullopt;
    if (own && own->isDouble()) {
      norm.momentum = own->toDouble();
    } else if (!own || !norm.batches.defined()) {
      if (!program) program.emplace(model);
      norm.momentum = program->momentum_of(norm.mean);
      norm.is_known = norm.momentum.has_value();
    }
    all.push_back(std::move(norm));
  }
  return all;
}

}  // namespace remuda::train
