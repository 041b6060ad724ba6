#include "train/transform.h"

#include <cstring>
#include <fmt/format.h>
#include <torch/script.h>

#include "data/mix.h"
#include "train/error_text.h"
#include "train/process_tuning.h"
#include "train/torch_compat.h"

namespace remuda::train {
namespace {

constexpr int64_t kRandomNumbers = 64;

/// Numbers of 0..1 with 24 bits, as torch.rand() gives them.
torch::Tensor random_numbers(uint64_t seed, uint64_t epoch, uint64_t index) {
  uint64_t state = data::mix(data::mix(data::mix(seed) ^ epoch) ^ index);
  const auto numbers = torch::empty({kRandomNumbers});
  for (float& number : std::span(numbers.data_ptr<float>(), size_t(kRandomNumbers)))
    number = float((state = data::mix(state)) >> 40) * 0x1p-24f;
  return numbers;
}

Error refusal(const std::string& path, const std::string& what) {
  return {ErrorKind::usage, fmt::format("the transform {} {}", path, what)};
}

}  // namespace

class Transform {
 public:
  static Result<std::unique_ptr<Transform>> load(const std::string& path, const data::ImageShape& shape,
                                                 data::Split split, uint64_t seed) {
    try {
      torch::jit::Module module = torch::jit::load(path, torch::kCPU);
      module.train(split == data::Split::train);
      const auto forward = module.find_method("forward");
      const size_t arguments = forward ? forward->num_inputs() - 1 : 0;  // without self
      if (arguments != 1 && arguments != 2)
        return tl::unexpected(refusal(path, "must have a method forward(image) or forward(image, random)"));
      return std::make_unique<Transform>(path, module, shape, arguments == 2, seed);
    } catch (const std::exception& error) {
      return tl::unexpected(refusal(path, fmt::format("cannot be loaded as TorchScript, with libtorch {}: {}",
                                                      TORCH_VERSION, sentence_of(error))));
    }
  }

  torch::Tensor empty_image() const { return torch::empty({shape_.channels, shape_.height, shape_.width}); }

  /// `image` may be changed by it.
  Result<torch::Tensor> apply(const torch::Tensor& image, uint64_t index, uint64_t epoch) const {
    try {
      const torch::NoGradGuard no_gradient;
      const OneThreadHere one_thread;
      std::vector<torch::IValue> arguments{image};
      if (takes_random_) arguments.emplace_back(random_numbers(seed_, epoch, index));
      const torch::IValue given = module_.get_method("forward")(std::move(arguments));
      if (!given.isTensor())
        return tl::unexpected(refusal(path_, fmt::format("gives a {}; it must give a tensor", given.tagKind())));
      const torch::Tensor& tensor = given.toTensor();
      if (tensor.dim() != 3 || tensor.scalar_type() != torch::kFloat || tensor.numel() == 0)
        return tl::unexpected(refusal(
            path_, fmt::format("gives {}; it must give Float of shape [channels, height, width]", shape_text(tensor))));
      return tensor.contiguous();
    } catch (const std::exception& error) {
      return tl::unexpected(refusal(path_, fmt::format("fails on image {}: {}", index, sentence_of(error))));
    }
  }

  const std::string path_;
  const torch::jit::Module module_;
  const data::ImageShape shape_;  ///< of what it is given
  const bool takes_random_;
  const uint64_t seed_;
};

namespace {

/// The default generator is the model's: what another thread draws from it would differ in each run.
Result<torch::Tensor> try_on_first(const Transform& transform, const data::Dataset& images) {
  const torch::Tensor image = transform.empty_image();
  std::vector<std::byte> target(images.target_bytes());
  REMUDA_TRY(images.write(0, 0, {static_cast<std::byte*>(image.data_ptr()), image.nbytes()}, target));
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const torch::Tensor before = generator.get_state();
  auto given = transform.apply(image, 0, 0);
  if (!given || generator.get_state().equal(before)) return given;
  generator.set_state(before);
  return tl::unexpected(refusal(transform.path_,
                                "draws random numbers of its own, which no run could repeat; forward(image, random) is "
                                "given 64 of them for each image"));
}

}  // namespace

TransformedSamples::TransformedSamples(std::unique_ptr<data::Dataset> images, std::unique_ptr<Transform> transform)
    : images_(std::move(images)), transform_(std::move(transform)) {}

TransformedSamples::~TransformedSamples() = default;

Result<std::unique_ptr<TransformedSamples>> TransformedSamples::open(std::unique_ptr<data::Dataset> images,
                                                                     const data::ImageShape& shape,
                                                                     const std::string& path, data::Split split,
                                                                     uint64_t seed) {
  REMUDA_ASSIGN(auto transform, Transform::load(path, shape, split, seed));
  REMUDA_ASSIGN(const torch::Tensor first, try_on_first(*transform, *images));
  std::unique_ptr<TransformedSamples> samples(new TransformedSamples(std::move(images), std::move(transform)));
  samples->given_ = {int(first.size(0)), int(first.size(1)), int(first.size(2))};
  return samples;
}

Result<void> TransformedSamples::write(uint64_t index, uint64_t epoch, std::span<std::byte> input,
                                       std::span<std::byte> target) const {
  const torch::Tensor image = transform_->empty_image();
  REMUDA_TRY(images_->write(index, epoch, {static_cast<std::byte*>(image.data_ptr()), image.nbytes()}, target));
  REMUDA_ASSIGN(const torch::Tensor given, transform_->apply(image, index, epoch));
  if (given.sizes() != torch::IntArrayRef({given_.channels, given_.height, given_.width}))
    return tl::unexpected(refusal(
        transform_->path_, fmt::format("gives {} for image {}, but [{}, {}, {}] for the first; all must be the same",
                                       shape_text(given), index, given_.channels, given_.height, given_.width)));
  std::memcpy(input.data(), given.data_ptr(), input.size());
  return {};
}

}  // namespace remuda::train
