// fine_tune MODEL.pt WEIGHTS.safetensors TUNED.safetensors: trains the matrices of a model that came as TorchScript,
// from weights in a file; biases and norms stay as they are. The model takes images of 12 x 12 and knows 5 classes.
//   remuda run -n 2 --any-model --each -- ./fine_tune model.pt weights.safetensors tuned.safetensors
#include <cstdio>
#include <remuda/parallel.h>
#include <torch/script.h>

namespace rp = remuda::parallel;

int main(int argc, char** argv) try {
  if (argc != 4) return std::fprintf(stderr, "usage: fine_tune MODEL.pt WEIGHTS.safetensors TUNED.safetensors\n"), 2;
  rp::tune_for_cpu();
  const rp::Group group = rp::Group::from_environment();
  torch::jit::Module model = torch::jit::load(argv[1]);
  rp::load_weights(model, argv[2]);
  model.to(group.device());
  model.train();

  for (auto parameter : model.parameters()) parameter.requires_grad_(parameter.dim() > 1);
  rp::DataParallel parallel(group, model);

  torch::manual_seed(7);
  const auto images = torch::rand({512, 1, 12, 12});
  const auto labels = images.mean({1, 2, 3}).sub(0.45).mul(50).clamp(0, 4).to(torch::kLong);
  double before = 0;
  rp::Step step;
  for (int i = 0; i < 60; ++i) {
    const rp::Part part = parallel.my_part(images.size(0));
    torch::Tensor loss;
    parallel.begin(double(part.size));
    if (part.size > 0) {
      const auto scores = model.forward({images.narrow(0, part.begin, part.size).to(group.device())}).toTensor();
      loss =
          torch::nn::functional::cross_entropy(scores, labels.narrow(0, part.begin, part.size).to(group.device()),
                                               torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
      loss.backward();
    }
    step = parallel.step(0.1, loss);
    if (i == 0) before = step.loss;
  }
  parallel.average_buffers();
  if (group.rank() == 0) {
    rp::save_weights(model, argv[3]);
    std::printf("loss %.4f, was %.4f; %.1f kB of state\n", step.loss, before, double(parallel.state_bytes()) / 1000);
  }
} catch (const rp::Error& error) {
  std::fprintf(stderr, "fine_tune: %s\n", error.what());
  return error.kind() == rp::Error::Kind::usage ? 2 : 1;
}
