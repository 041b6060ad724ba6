#include "train/samples.h"

#include <array>

namespace remuda::train {
namespace {

/// A TorchScript model does not report the size of its vocabulary: all tokens of uint16 are accepted.
constexpr int kEveryToken = 1 << 16;

/// 0..255 as -1..1.
constexpr std::array<float, 256> kScaled = [] {
  std::array<float, 256> values{};
  for (int i = 0; i < 256; ++i) values[i] = static_cast<float>(i) / 127.5f - 1.0f;
  return values;
}();

Batch gather_images(const data::ImageSet& set, std::span<const uint64_t> indices) {
  const auto& shape = set.shape();
  const int64_t n = static_cast<int64_t>(indices.size());
  Batch batch{torch::empty({n, shape.channels, shape.height, shape.width}), torch::empty({n}, torch::kLong)};
  float* out = batch.input.data_ptr<float>();
  for (int64_t i = 0; i < n; ++i) {
    for (const uint8_t pixel : set.pixels(indices[i])) *out++ = kScaled[pixel];
    batch.target.data_ptr<int64_t>()[i] = set.label(indices[i]);
  }
  return batch;
}

Batch gather_tokens(const data::TokenSet& set, std::span<const uint64_t> indices, int64_t context) {
  const int64_t n = static_cast<int64_t>(indices.size());
  const auto windows = torch::empty({n, context + 1}, torch::kLong);
  int64_t* out = windows.data_ptr<int64_t>();
  for (const uint64_t index : indices)
    for (const uint16_t token : set.window(index)) *out++ = token;
  return {windows.narrow(1, 0, context).contiguous(), windows.narrow(1, 1, context).contiguous()};
}

}  // namespace

Result<Samples> Samples::open(const job::DataSpec& spec, const job::DataFiles& files, const job::ModelSpec& model) {
  if (spec.format == job::DataFormat::tokens) {
    const int vocabulary = model.vocabulary > 0 ? model.vocabulary : kEveryToken;
    REMUDA_ASSIGN(data::TokenSet set, data::TokenSet::open(files.tokens, spec.context, vocabulary));
    return Samples(std::move(set), spec.context);
  }
  REMUDA_ASSIGN(data::ImageSet set, data::ImageSet::open(files.images, files.labels));
  return Samples(std::move(set), 0);
}

size_t Samples::size() const {
  return std::visit([](const auto& set) { return set.size(); }, set_);
}

ModelInput Samples::model_input() const {
  ModelInput input;
  input.context = context_;
  if (const auto* images = std::get_if<data::ImageSet>(&set_)) {
    const auto& shape = images->shape();
    input = {shape.channels, shape.height, shape.width, images->classes(), 0};
  }
  return input;
}

Batch Samples::gather(std::span<const uint64_t> indices, torch::ScalarType type) const {
  if (const auto* tokens = std::get_if<data::TokenSet>(&set_)) return gather_tokens(*tokens, indices, context_);
  Batch batch = gather_images(std::get<data::ImageSet>(set_), indices);
  batch.input = batch.input.to(type);
  return batch;
}

}  // namespace remuda::train
