// own_data: each rank makes its part of the samples on threads, while the step before computes.
//   remuda run -n 2 --any-model --each -- ./own_data
#include <cstdio>
#include <remuda/parallel.h>

namespace rp = remuda::parallel;

/// A wave of 64 values and its frequency: what a program would read from a file, or draw. Both depend on the index and
/// the epoch only, so that the samples are the same for any number of ranks and threads.
rp::DataLoader::Sample wave(int64_t index, int64_t epoch) {
  const double frequency = 1 + double(index % 100) / 25, phase = double(epoch) + double(index);
  const auto time = torch::arange(64, torch::kFloat) / 64;
  return {(2 * M_PI * frequency * time + phase).sin(), torch::tensor({frequency}, torch::kFloat)};
}

int main() try {
  rp::tune_for_cpu();
  const rp::Group group = rp::Group::from_environment();
  torch::manual_seed(3);
  torch::nn::Sequential model(torch::nn::Linear(64, 128), torch::nn::ReLU(), torch::nn::Linear(128, 1));
  model->to(group.device());

  rp::Options options;
  options.optimizer = rp::AdamW{};
  rp::DataParallel parallel(group, *model, options);
  rp::DataLoader::Options loading;
  loading.batch = 128;
  loading.workers = 2;
  rp::DataLoader loader(group, 2000, wave, loading);
  rp::Step step;
  while (loader.epoch() <= 20) {
    const auto batch = loader.next(parallel);
    torch::Tensor loss;
    parallel.begin(double(batch.part.size));
    if (batch.part.size > 0) {
      const auto scores = model->forward(batch.data.to(group.device()));
      loss = torch::mse_loss(scores, batch.target.to(group.device()), torch::Reduction::Sum);
      loss.backward();
    }
    step = parallel.step(/*learning_rate=*/0.003, loss);
  }
  parallel.check();
  if (group.rank() == 0) std::printf("%d ranks: loss %.4f\n", group.size(), step.loss);
} catch (const rp::Error& error) {
  std::fprintf(stderr, "own_data: %s\n", error.what());
  return error.kind() == rp::Error::Kind::usage ? 2 : 1;
}
