// Tests only: models as TorchScript, which draw no random numbers: threads of one process would draw them in any order.
#pragma once

#include <string>
#include <torch/script.h>
#include <vector>

namespace remuda::train::testing {

/// Weights of [out, in], the same in every run.
inline torch::Tensor script_weight(int64_t out, int64_t in) {
  return torch::arange(out * in, torch::kFloat).sin().mul(0.1).view({out, in}).requires_grad_();
}

/// Two layers for images of so many pixels and 5 classes, in `file`. The buffer "passes" counts the forward passes of
/// training; the scores of the first `infinite` ones are not finite.
inline void write_two_layers(const std::string& file, int64_t pixels, int infinite = 0) {
  torch::jit::Module module("two_layers");
  module.register_parameter("up", script_weight(32, pixels), false);
  module.register_parameter("down", script_weight(5, 32), false);
  module.register_buffer("passes", torch::zeros({1}));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(R"(
def forward(self, x):
  scores = torch.matmul(torch.tanh(torch.matmul(x.flatten(1), self.up.t())), self.down.t())
  if self.training:
    self.passes.add_(1)
    if bool(self.passes <= )" +
                std::to_string(infinite) + R"():
      scores = scores * float('inf')
  return scores
)");
  module.save(file);
}

/// Blocks, and nothing beside them, in `file`: each has a weight of [out, in], and gives what `expression` makes of it
/// and of the input, x.
struct ScriptLayer {
  int64_t out = 0, in = 0;
  std::string expression = "torch.tanh(torch.linear(x.flatten(1), self.weight))";
};
inline void write_sequential(const std::string& file, const std::vector<ScriptLayer>& layers) {
  torch::jit::Module model("__torch__.torch.nn.modules.container.Sequential");
  std::string forward = "def forward(self, x):\n";
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string name = "layer" + std::to_string(i);
    torch::jit::Module layer("__torch__.Layer" + std::to_string(i));
    layer.register_parameter("weight", script_weight(layers[i].out, layers[i].in), false);
    layer.define("def forward(self, x):\n  return " + layers[i].expression + "\n");
    model.register_module(name, layer);
    forward += "  x = self." + name + ".forward(x)\n";
  }
  model.define(forward + "  return x\n");
  model.save(file);
}

}  // namespace remuda::train::testing
