// Tests only: writes a TorchScript model to the file its argument names: 12x12 images to log-probabilities of 5
// classes.
#include <torch/script.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  torch::jit::Module module("linear");
  module.register_parameter("weight", torch::zeros({5, 144}, torch::requires_grad()), false);
  module.register_parameter("bias", torch::zeros({5}, torch::requires_grad()), false);
  module.define(
      "def forward(self, x):\n"
      "  return torch.log_softmax(torch.matmul(x.flatten(1), self.weight.t()) + self.bias, 1)\n");
  module.save(argv[1]);
}
