#include "train/model/recompute.h"

#include <ATen/autocast_mode.h>
#include <algorithm>
#include <stdexcept>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <unordered_set>

#include "base/clock.h"
#include "train/device/random_state.h"
#include "train/precision.h"

namespace remuda::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What the first pass leaves for the second one, besides the input.
struct FirstPass : torch::CustomClassHolder {
  FirstPass(Block its_block, Buffers its_buffers, variable_list its_parameters, torch::Device its_device)
      : block(std::move(its_block)),
        buffers(std::move(its_buffers)),
        parameters(std::move(its_parameters)),
        device(its_device),
        compute_type(Autocast::type_on(its_device)),
        random(its_device) {}

  Block block;
  Buffers buffers;
  variable_list parameters;  ///< each once; empty: their gradients do not leave the block
  torch::Device device;
  torch::ScalarType compute_type;
  RandomState random;
  std::vector<std::vector<double>> computed_once;
};

/// A pass through a block, while it lives: the first, or the second.
class Pass {
 public:
  Pass(FirstPass& first, bool second) : first_(first), second_(second), around_(t_pass) { t_pass = this; }
  ~Pass() { t_pass = around_; }
  Pass(const Pass&) = delete;

  static Pass* here() { return t_pass; }

  std::vector<double> once(const std::function<std::vector<double>()>& compute) {
    if (second_) return first_.computed_once.at(next_++);
    const Left left(*this);
    return first_.computed_once.emplace_back(computed_once(compute));
  }

 private:
  /// While it lives, the pass around this one goes on: a block within a block gets what the outer one has.
  struct Left {
    explicit Left(Pass& its_pass) : pass(its_pass) { t_pass = pass.around_; }
    ~Left() { t_pass = &pass; }
    Left(const Left&) = delete;
    Pass& pass;
  };
  static thread_local Pass* t_pass;

  FirstPass& first_;
  const bool second_;
  Pass* const around_;
  size_t next_ = 0;
};
thread_local Pass* Pass::t_pass = nullptr;

/// For destructors: a device that is lost while they restore its state says so at the next call anyway.
template <typename Restore>
void quietly(const Restore& restore) {
  try {
    restore();
  } catch (const std::exception&) {
    return;
  }
}

/// While it lives, random numbers are those of the first pass; then they go on where they were.
class SameNumbers {
 public:
  explicit SameNumbers(const FirstPass& first) : before_(first.device) { first.random.restore(); }
  ~SameNumbers() {
    quietly([this] { before_.restore(); });
  }
  SameNumbers(const SameNumbers&) = delete;

 private:
  const RandomState before_;
};

/// Buffers have their values again when it ends, which is after the backward pass that uses them.
class KeptBuffers {
 public:
  explicit KeptBuffers(const Buffers& buffers) : buffers_(buffers) {
    if (!buffers_) return;
    for (const auto& buffer : buffers_()) values_.push_back(buffer.detach().clone());
  }
  ~KeptBuffers() {
    if (!buffers_) return;
    quietly([this] {
      const torch::NoGradGuard no_grad;
      const std::vector<torch::Tensor> now = buffers_();
      for (size_t i = 0; i < values_.size(); ++i) torch::Tensor(now.at(i)).copy_(values_[i]);
    });
  }
  KeptBuffers(const KeptBuffers&) = delete;

 private:
  const Buffers& buffers_;
  std::vector<torch::Tensor> values_;
};

thread_local int t_blocks = 0;  ///< whose backward pass this thread is in, one within the other
thread_local double t_recomputed_s = 0;

struct InBlock {
  InBlock() { ++t_blocks; }
  ~InBlock() { --t_blocks; }
};

torch::Tensor run_once(const Block& block, const torch::Tensor& input) {
  const auto version = input._version();
  torch::Tensor output = block(input);
  if (input._version() != version)
    throw std::runtime_error("a block that is to be recomputed changes its input in place");
  return output;
}

/// The parameters to train among these, each once, as tied ones have several names.
variable_list trained_once(const std::vector<torch::Tensor>& parameters) {
  variable_list kept;
  std::unordered_set<at::TensorImpl*> seen;
  for (const auto& one : parameters)
    if (one.requires_grad() && seen.insert(one.unsafeGetTensorImpl()).second) kept.push_back(one);
  return kept;
}

/// A leaf of the graph of `output` that is none of `known` would get no gradient: throws.
void refuse_strangers(const torch::Tensor& output, const variable_list& known) {
  std::vector<torch::autograd::Node*> open{output.grad_fn().get()};
  std::unordered_set<torch::autograd::Node*> seen;
  while (!open.empty()) {
    auto* const node = open.back();
    open.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node);
        leaf && std::ranges::none_of(known, [&](const auto& one) { return one.is_same(leaf->variable); }))
      throw std::runtime_error("a block that is to be recomputed uses a parameter of " + shape_text(leaf->variable) +
                               " that is not among its own: register it in the block's module, too");
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
  }
}

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  /// `leaf` needs a gradient, so that the parameters of a block whose input needs none get theirs.
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input, const torch::Tensor& /*leaf*/,
                               const at::TensorList& /*parameters*/, const c10::intrusive_ptr<FirstPass>& first) {
    context->save_for_backward({input});
    context->saved_data["first"] = c10::IValue::make_capsule(first);
    const Pass pass(*first, /*second=*/false);
    torch::Tensor output = run_once(first->block, input);
    // Autocast keeps the casts of weights for the rest of the pass; these, made here without gradients, are in its way.
    if (first->compute_type != torch::kFloat) at::autocast::clear_cache();
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto first = c10::static_intrusive_pointer_cast<FirstPass>(context->saved_data["first"].toCapsule());
    const torch::Tensor saved = context->get_saved_variables().at(0);
    const torch::Tensor input = saved.detach().requires_grad_(saved.requires_grad());
    const KeptBuffers kept(first->buffers);
    const torch::Tensor output = compute_again(*first, input);
    variable_list results(first->parameters.size() + 3);  // as forward() has arguments
    if (!output.requires_grad()) return results;
    const InBlock in_block;
    if (first->parameters.empty()) {
      torch::autograd::backward({output}, {gradients.at(0)});
      results[0] = of_input(input, input.grad());
      return results;
    }
    variable_list inputs = first->parameters;
    if (input.requires_grad()) inputs.push_back(input);
    refuse_strangers(output, inputs);
    const variable_list all = torch::autograd::grad({output}, inputs, {gradients.at(0)}, /*retain_graph=*/false,
                                                    /*create_graph=*/false, /*allow_unused=*/true);
    if (input.requires_grad()) results[0] = of_input(input, all.back());
    std::ranges::copy_n(all.begin(), std::ssize(first->parameters), results.begin() + 2);
    return results;
  }

 private:
  /// Zeros where the block does not use its input: hooks of what gave that are not told of gradients that are missing.
  static torch::Tensor of_input(const torch::Tensor& input, const torch::Tensor& gradient) {
    return gradient.defined() || !input.requires_grad() ? gradient : torch::zeros_like(input);
  }
  static torch::Tensor compute_again(FirstPass& first, const torch::Tensor& input) {
    const double start = monotonic_s();
    const torch::AutoGradMode with_gradients(true);
    const SameNumbers same(first);
    const Pass pass(first, /*second=*/true);
    const Autocast autocast(first.device, first.compute_type);
    torch::Tensor output =
        first.block(input.view_as(input));  // autocast would keep one cast of a leaf for all its uses
    if (first.device.is_cpu()) t_recomputed_s += monotonic_s() - start;
    return output;
  }
};

}  // namespace

std::vector<double> computed_once(const std::function<std::vector<double>()>& compute) {
  return Pass::here() ? Pass::here()->once(compute) : compute();
}

bool computes_block() { return Pass::here() != nullptr; }

bool in_recomputed_block() { return t_blocks > 0; }

double recomputed_s() { return t_recomputed_s; }

torch::Tensor recomputed(Block block, const torch::Tensor& input, Buffers buffers,
                         const std::vector<torch::Tensor>& parameters) {
  if (!torch::GradMode::is_enabled()) return run_once(block, input);
  variable_list own = trained_once(parameters);
  const auto leaf = torch::empty({}, torch::requires_grad(own.empty()));  // parameters that are arguments need none
  auto first = c10::make_intrusive<FirstPass>(std::move(block), std::move(buffers), std::move(own), input.device());
  const at::TensorList trained = first->parameters;
  return Recompute::apply(input, leaf, trained, first);
}

}  // namespace remuda::train
