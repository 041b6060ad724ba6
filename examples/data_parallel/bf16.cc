// bf16: each rank computes in the best type that its device has; what they add up and update stays float32. On devices
// that compute in float16 the loss is scaled, and a step that overflows is skipped by all.
//   remuda run -n 2 --any-model --each -- ./bf16 [fp32|bf16|fp16|auto]
#include <cstdio>
#include <remuda/parallel.h>

namespace rp = remuda::parallel;

rp::Precision precision_named(const std::string& name) {
  if (name == "fp32") return rp::Precision::fp32;
  if (name == "bf16") return rp::Precision::bf16;
  if (name == "fp16") return rp::Precision::fp16;
  return rp::Precision::automatic;
}

int main(int argc, char** argv) try {
  rp::tune_for_cpu();
  const rp::Group group = rp::Group::from_environment();
  torch::manual_seed(7);
  const auto inputs = torch::randn({4096, 16});
  const auto labels = inputs.narrow(1, 0, 4).argmax(1);  // which of the first four is the largest
  torch::nn::Sequential model(torch::nn::Linear(16, 64), torch::nn::ReLU(), torch::nn::Linear(64, 4));
  model->to(group.device());

  rp::Options options;
  options.optimizer = rp::AdamW{};
  options.precision = precision_named(argc > 1 ? argv[1] : "bf16");
  rp::DataParallel parallel(group, *model, options);
  const auto sum = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum);
  rp::Step step;
  for (int64_t first = 0; first < 4 * inputs.size(0); first += 128) {
    const rp::Part part = parallel.my_part(128);
    const auto mine = [&](const torch::Tensor& all) {
      return all.narrow(0, first % all.size(0) + part.begin, part.size).to(group.device());
    };
    torch::Tensor loss;
    parallel.begin(double(part.size));
    if (part.size > 0) {
      torch::Tensor scores;
      {
        const rp::Autocast autocast(parallel);
        scores = model->forward(mine(inputs));
      }
      loss = torch::nn::functional::cross_entropy(scores.to(torch::kFloat), mine(labels), sum);
      parallel.backward(loss);
    }
    step = parallel.step(0.01, loss);
    if (!step.applied) std::fprintf(stderr, "skipped: %s\n", step.skipped.c_str());
  }
  if (group.rank() == 0) std::printf("%s: loss %.6f\n", parallel.precision().c_str(), step.loss);
} catch (const rp::Error& error) {
  std::fprintf(stderr, "bf16: %s\n", error.what());
  return error.kind() == rp::Error::Kind::usage ? 2 : 1;
}
