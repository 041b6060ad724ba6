#include "train/samples.h"

#include <numeric>
#include <stdexcept>

#include "data/image_files.h"
#include "data/image_set.h"

namespace remuda::train {
namespace {

/// A TorchScript model does not report the size of its vocabulary: all tokens of uint16 are accepted.
constexpr int kEveryToken = 1 << 16;

Result<std::unique_ptr<data::Images>> open_images(const job::DataSpec& spec, const job::DataFiles& files) {
  if (spec.format == job::DataFormat::images) {
    const data::ImageFormat format{.channels = spec.color == job::Color::gray ? 1 : 3, .size = spec.size};
    REMUDA_ASSIGN(data::ImageFiles set, data::ImageFiles::open(files.path, format));
    return std::make_unique<data::ImageFiles>(std::move(set));
  }
  REMUDA_ASSIGN(data::ImageSet set, data::ImageSet::open(files.images, files.labels));
  return std::make_unique<data::ImageSet>(std::move(set));
}

}  // namespace

Result<Samples> Samples::open(const job::DataSpec& spec, const job::DataFiles& files, const job::ModelSpec& model,
                              uint64_t seed) {
  if (spec.format == job::DataFormat::tokens) {
    const int vocabulary = model.vocabulary > 0 ? model.vocabulary : kEveryToken;
    REMUDA_ASSIGN(data::TokenSet set, data::TokenSet::open(files.tokens, spec.context, vocabulary));
    return Samples(std::make_unique<data::TokenSamples>(std::move(set), spec.context), {.context = spec.context});
  }
  REMUDA_ASSIGN(std::unique_ptr<data::Images> images, open_images(spec, files));
  const data::ImageShape& shape = images->shape();
  const data::ImageTransform transform{
      .flip = spec.flip == job::Switch::on, .crop = spec.crop, .seed = seed, .mean = spec.mean, .deviation = spec.std};
  REMUDA_TRY(data::check_transform(transform, shape));
  const ModelInput input{shape.channels, shape.height, shape.width, images->classes(), 0};
  return Samples(std::make_unique<data::ImageSamples>(std::move(images), transform), input);
}

Batch Samples::as_tensors(const data::LoadedBatch& batch, uint64_t count) const {
  const auto n = int64_t(count);
  const auto tensor = [](const std::shared_ptr<std::byte[]>& memory, const std::vector<int64_t>& sizes,
                         torch::ScalarType type) {
    return torch::from_blob(memory.get(), sizes, [memory](void*) {}, type);
  };
  if (input_.context > 0)
    return {tensor(batch.inputs, {n, input_.context}, torch::kLong),
            tensor(batch.targets, {n, input_.context}, torch::kLong)};
  return {tensor(batch.inputs, {n, input_.channels, input_.height, input_.width}, torch::kFloat),
          tensor(batch.targets, {n}, torch::kLong)};
}

Result<Batch> Samples::gather(std::span<const uint64_t> indices) const {
  constexpr uint64_t kNoEpoch = 0;
  const size_t input = set_->input_bytes(), target = set_->target_bytes(), count = indices.size();
  const data::LoadedBatch batch = data::LoadedBatch::of(*set_, count);
  for (size_t i = 0; i < count; ++i)
    REMUDA_TRY(set_->write(indices[i], kNoEpoch, {batch.inputs.get() + i * input, input},
                           {batch.targets.get() + i * target, target}));
  return as_tensors(batch, count);
}

Batch FirstSamples::operator()(int64_t count) {
  if (!batch_.input.defined() || batch_.input.size(0) < count) {
    std::vector<uint64_t> indices(count);
    std::iota(indices.begin(), indices.end(), 0);
    auto batch = samples_.gather(indices);
    if (!batch) throw std::runtime_error(batch.error().message);
    batch_ = std::move(*batch);
  }
  return {batch_.input.narrow(0, 0, count), batch_.target.narrow(0, 0, count)};
}

}  // namespace remuda::train
