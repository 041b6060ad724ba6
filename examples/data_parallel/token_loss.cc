// token_loss: a loss of which tokens count, and not samples. Sequences are of many lengths, so the ranks' parts have
// unlike numbers of tokens that count; the weight says how many, and each token counts the same on every rank.
//   remuda run -n 2 --any-model --each -- ./token_loss
#include <cstdio>
#include <remuda/parallel.h>

namespace rp = remuda::parallel;

constexpr int64_t kVocabulary = 16, kLength = 12, kPadding = 0;

/// Sequences that count upwards and end anywhere; the rest is padding.
torch::Tensor make_sequences(int64_t count) {
  const auto starts = torch::randint(1, kVocabulary, {count, 1});
  const auto lengths = torch::randint(2, kLength + 1, {count, 1});
  const auto places = torch::arange(kLength + 1);
  return torch::where(places < lengths, (starts - 1 + places).remainder(kVocabulary - 1) + 1,
                      torch::zeros({}, torch::kLong));
}

int main() try {
  rp::tune_for_cpu();
  const rp::Group group = rp::Group::from_environment();
  torch::manual_seed(7);
  const auto sequences = make_sequences(2048);
  torch::nn::Sequential model(torch::nn::Embedding(kVocabulary, 32), torch::nn::Linear(32, kVocabulary));
  model->to(group.device());

  rp::Options options;
  options.optimizer = rp::AdamW{};
  options.weight_decay = 0.01;
  options.without_decay = [](const std::string&, const torch::Tensor& parameter) { return parameter.dim() < 2; };
  options.clip_norm = 1;
  rp::DataParallel parallel(group, *model, options);
  const auto loss_options =
      torch::nn::functional::CrossEntropyFuncOptions().ignore_index(kPadding).reduction(torch::kSum);
  rp::Step step;
  for (int64_t first = 0; first < sequences.size(0); first += 64) {
    const rp::Part part = parallel.my_part(64);
    const auto mine = sequences.narrow(0, first + part.begin, part.size).to(group.device());
    const auto inputs = mine.narrow(1, 0, kLength), targets = mine.narrow(1, 1, kLength);
    torch::Tensor loss;
    parallel.begin(targets.ne(kPadding).sum().item<double>());  // this rank's tokens that count
    if (part.size > 0) {
      const auto scores = model->forward(inputs).flatten(0, 1);
      loss = torch::nn::functional::cross_entropy(scores, targets.flatten(), loss_options);
      loss.backward();
    }
    step = parallel.step(0.02, loss);
  }
  if (group.rank() == 0) std::printf("loss per token %.4f, of %.0f tokens\n", step.loss, step.weight);
} catch (const rp::Error& error) {
  std::fprintf(stderr, "token_loss: %s\n", error.what());
  return error.kind() == rp::Error::Kind::usage ? 2 : 1;
}
