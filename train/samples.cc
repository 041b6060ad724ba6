#include "train/samples.h"

#include <numeric>
#include <stdexcept>

#include "data/cifar.h"
#include "data/image_files.h"
#include "data/image_set.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/transform.h"

namespace remuda::train {
namespace {

/// A TorchScript model does not report the size of its vocabulary: all tokens of uint16 are accepted.
constexpr int kEveryToken = 1 << 16;

const job::DataFiles& files_of(const job::DataSpec& spec, data::Split split) {
  return split == data::Split::train ? spec.train : spec.test.value();
}

Result<std::unique_ptr<data::Images>> open_images(const job::DataSpec& spec, data::Split split) {
  const job::DataFiles& files = files_of(spec, split);
  if (spec.format == job::DataFormat::cifar) {
    REMUDA_ASSIGN(data::CifarSet set, data::CifarSet::open(files.path, split));
    return std::make_unique<data::CifarSet>(std::move(set));
  }
  if (spec.format == job::DataFormat::images) {
    const data::ImageFormat format{.channels = spec.color == job::Color::gray ? 1 : 3, .size = spec.size};
    REMUDA_ASSIGN(data::ImageFiles set, data::ImageFiles::open(files.path, format));
    return std::make_unique<data::ImageFiles>(std::move(set));
  }
  REMUDA_ASSIGN(data::ImageSet set, data::ImageSet::open(files.images, files.labels));
  return std::make_unique<data::ImageSet>(std::move(set));
}

}  // namespace

Result<Samples> Samples::open(const job::DataSpec& spec, data::Split split, const job::ModelSpec& model,
                              uint64_t seed) {
  if (spec.format == job::DataFormat::tokens) {
    const int vocabulary = model.vocabulary > 0 ? model.vocabulary : kEveryToken;
    REMUDA_ASSIGN(data::TokenSet set, data::TokenSet::open(files_of(spec, split).tokens, spec.context, vocabulary));
    return Samples(std::make_unique<data::TokenSamples>(std::move(set), spec.context), {.context = spec.context});
  }
  REMUDA_ASSIGN(std::unique_ptr<data::Images> images, open_images(spec, split));
  data::ImageCache* cache = nullptr;
  if (spec.cache_mib > 0) {
    REMUDA_ASSIGN(auto cached, data::ImageCache::create(std::move(images), uint64_t(spec.cache_mib) << 20));
    cache = cached.get();
    images = std::move(cached);
  }
  const data::ImageShape shape = images->shape();
  const data::ImageTransform transform{
      .flip = spec.flip == job::Switch::on, .crop = spec.crop, .seed = seed, .mean = spec.mean, .deviation = spec.std};
  REMUDA_TRY(data::check_transform(transform, shape));
  ModelInput input{shape.channels, shape.height, shape.width, images->classes(), 0};
  std::unique_ptr<data::Dataset> set = std::make_unique<data::ImageSamples>(std::move(images), transform);
  if (!spec.transform.empty()) {
    REMUDA_ASSIGN(auto transformed, TransformedSamples::open(std::move(set), shape, spec.transform, split, seed));
    const data::ImageShape& given = transformed->shape();
    input = {given.channels, given.height, given.width, input.classes, 0};
    set = std::move(transformed);
  }
  Samples samples(std::move(set), input);
  samples.cache_ = cache;
  return samples;
}

Result<void> Samples::share_cache(comm::Communicator& communicator) {
  if (!cache_) return {};  // on all ranks: it is a setting of the job
  REMUDA_ASSIGN(const auto offers, gather_all(communicator, cache_->offer(), label::kImageCache));
  for (int rank = 0; rank < communicator.rank(); ++rank)
    if (cache_->attach(offers[size_t(rank)])) break;
  return communicator.barrier(label::kImageCache);  // until then the others' memory must be open
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
