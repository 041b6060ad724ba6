// train [FILE]: a small network learns a function on all devices of a job; FILE gets its weights.
//   remuda run -n 2 --any-model --each -- ./train trained.safetensors
#include <cstdio>
#include <remuda/parallel.h>

namespace rp = remuda::parallel;

int main(int argc, char** argv) try {
  rp::tune_for_cpu();
  const rp::Group group = rp::Group::from_environment({{"seed", "7"}});
  torch::manual_seed(7);
  const auto inputs = torch::rand({4096, 8}), targets = inputs.square().sum(1, /*keepdim=*/true);
  torch::nn::Sequential model(torch::nn::Linear(8, 64), torch::nn::ReLU(), torch::nn::Linear(64, 1));
  model->to(group.device());

  rp::Options options;
  options.optimizer = rp::AdamW{};
  rp::DataParallel parallel(group, *model, options);
  const int64_t batch = 256;
  rp::Step step;
  for (int epoch = 0; epoch < 20; ++epoch)
    for (int64_t first = 0; first < inputs.size(0); first += batch) {
      const rp::Part part = parallel.my_part(batch);  // by speed: a slow device gets few samples, or none
      const auto mine = [&](const torch::Tensor& all) {
        return all.narrow(0, first + part.begin, part.size).to(group.device());
      };
      torch::Tensor loss;
      parallel.begin(double(part.size));
      if (part.size > 0) {
        loss = torch::mse_loss(model->forward(mine(inputs)), mine(targets), torch::Reduction::Sum);
        loss.backward();
      }
      step = parallel.step(/*learning_rate=*/0.01, loss);
    }
  parallel.check();
  if (group.rank() == 0) {
    std::printf("%d ranks over %s: loss %.4f\n", group.size(), group.transport().c_str(), step.loss);
    if (argc > 1) rp::save_weights(*model, argv[1]);
  }
} catch (const rp::Error& error) {
  std::fprintf(stderr, "train: %s\n", error.what());
  return error.kind() == rp::Error::Kind::usage ? 2 : 1;
}
