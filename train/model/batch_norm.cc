#include "train/model/batch_norm.h"

#include "train/model/norm_moments.h"
#include "train/model/recompute.h"
#include "train/precision.h"

namespace remuda::train {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// All dimensions but that of the channels.
std::vector<int64_t> reduced(const Tensor& input) {
  std::vector<int64_t> dimensions;
  for (int64_t i = 0; i < input.dim(); ++i)
    if (i != 1) dimensions.push_back(i);
  return dimensions;
}

/// One number for each channel, to go with `input`.
Tensor beside(const Tensor& channels, const Tensor& input) {
  std::vector<int64_t> sizes(size_t(input.dim()), 1);
  sizes[1] = channels.numel();
  return channels.view(sizes);
}

std::vector<double> on_host(const Tensor& numbers) {
  const Tensor host = numbers.to(torch::kCPU, torch::kDouble).contiguous();
  return {host.data_ptr<double>(), host.data_ptr<double>() + host.numel()};
}

/// Numbers of the host where `like` is, and of its type.
Tensor as(const Tensor& like, std::span<const double> numbers) {
  return torch::tensor(at::ArrayRef<double>(numbers.data(), numbers.size()), torch::kDouble).to(like.options());
}

std::vector<double> moments_of(const Tensor& input) {
  const torch::NoGradGuard no_grad;
  const int64_t values = input.numel() / input.size(1);
  const auto [variance, mean] = torch::var_mean(input, reduced(input), /*unbiased=*/false);
  std::vector<double> moments = on_host(torch::cat({torch::zeros({1}, mean.options()), mean, variance * values}));
  moments[0] = double(values);
  return moments;
}

struct Shared : torch::CustomClassHolder {
  explicit Shared(std::shared_ptr<SynchronizedNorm> its_norm) : norm(std::move(its_norm)) {}
  std::shared_ptr<SynchronizedNorm> norm;
};

class Normalise : public torch::autograd::Function<Normalise> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const std::vector<double>& moments, const c10::intrusive_ptr<Shared>& shared) {
    const size_t channels = moments.size() / 2;
    const auto all = std::span(moments);
    const Tensor mean = as(input, all.subspan(1, channels)),
                 variance = as(input, all.subspan(1 + channels)) / moments[0];
    context->save_for_backward({input, weight, mean, (variance + shared->norm->epsilon()).rsqrt()});
    context->saved_data["values"] = moments[0];
    context->saved_data["shared"] = c10::IValue::make_capsule(shared);
    return torch::batch_norm(input, weight, bias, mean, variance, /*training=*/false, /*momentum=*/0,
                             shared->norm->epsilon(), /*cudnn_enabled=*/true);
  }

  // With g the gradient of the output, x' = (x - mean) / deviation and means over the values of all ranks:
  // dx = weight / deviation * (g - mean(g) - x' mean(g x')).
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto shared = c10::static_intrusive_pointer_cast<Shared>(context->saved_data["shared"].toCapsule());
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &mean = saved[2], &factor = saved[3], &gradient = gradients[0];
    const Tensor centred = input - beside(mean, input);
    const Tensor sum = gradient.sum(reduced(input)), product = (gradient * centred).sum(reduced(input)) * factor;
    NormExchange& exchange = shared->norm->exchange();
    const std::vector<double> all = exchange.add_up_gradients(*shared->norm, on_host(torch::cat({sum, product})));
    const size_t channels = all.size() / 2;
    const double values = context->saved_data["values"].toDouble();
    const Tensor mean_gradient = as(sum, std::span(all).first(channels)) / values,
                 mean_product = as(sum, std::span(all).subspan(channels)) / values, scale = weight * factor;
    const Tensor of_input = centred.mul_(beside(-mean_product * factor * scale, input))
                                .sub_(beside(mean_gradient * scale, input))
                                .addcmul_(gradient, beside(scale, input));
    return {of_input, product, sum, Tensor(), Tensor()};
  }
};

}  // namespace

void check_values(const Tensor& input) {
  TORCH_CHECK(input.numel() != input.size(1), "expected more than 1 value per channel when training, got input size ",
              input.sizes());
}

SynchronizedNorm::SynchronizedNorm(NormExchange& exchange, std::function<NormTensors()> tensors,
                                   const torch::nn::BatchNormOptions& options)
    : exchange_(exchange), tensors_(std::move(tensors)), epsilon_(options.eps()) {
  if (const auto momentum = options.momentum()) momentum_ = *momentum;
}

Tensor SynchronizedNorm::forward(const std::shared_ptr<SynchronizedNorm>& norm, const Tensor& input) {
  const Tensor x = widened(input);
  const bool trains = torch::GradMode::is_enabled() || computes_block();
  if (!trains) check_values(x);
  const NormExchange::Alone alone(trains ? nullptr : &norm->exchange_);
  const std::vector<double> moments =
      computed_once([&] { return norm->exchange_.add_up_moments(*norm, moments_of(x)); });
  const NormTensors own = norm->tensors_();
  const auto channel = [&](const Tensor& given, double otherwise) {
    return given.defined() ? given : torch::full({x.size(1)}, otherwise, x.options());
  };
  return Normalise::apply(x, channel(own.weight, 1), channel(own.bias, 0), moments, c10::make_intrusive<Shared>(norm))
      .to(input.scalar_type());
}

void SynchronizedNorm::count(std::span<const double> moments) {
  const NormTensors own = tensors_();
  if (!own.running_mean.defined() || moments[0] < 2) return;
  const torch::NoGradGuard no_grad;
  const size_t channels = moments.size() / 2;
  own.batches.add_(1);
  const double part = momentum_ ? *momentum_ : 1 / own.batches.item<double>();
  const auto move = [&](const Tensor& statistic, std::span<const double> towards, double divided_by) {
    statistic.mul_(1 - part).add_(as(statistic, towards), part / divided_by);
  };
  move(own.running_mean, moments.subspan(1, channels), 1);
  move(own.running_var, moments.subspan(1 + channels), moments[0] - 1);
}

Tensor local_batch_norm(const NormTensors& tensors, const torch::nn::BatchNormOptions& options, bool training,
                        const Tensor& input) {
  if (training) check_values(input);
  const bool counts = training && tensors.batches.defined();
  if (counts) tensors.batches.add_(1);
  double part = options.momentum().value_or(0);
  if (counts && !options.momentum()) part = 1 / tensors.batches.item<double>();
  return torch::batch_norm(input, tensors.weight, tensors.bias, tensors.running_mean, tensors.running_var,
                           training || !tensors.running_mean.defined(), part, options.eps(),
                           at::globalContext().userEnabledCuDNN());
}

void BatchNormImpl::synchronize(NormExchange& exchange) {
  synchronized_ = std::make_shared<SynchronizedNorm>(exchange, [this] { return tensors(); }, options);
  exchange.add(*synchronized_);
}

NormStatistics BatchNormImpl::statistics() const {
  NormStatistics own{.mean = running_mean, .variance = running_var, .batches = num_batches_tracked, .momentum = {}};
  if (const auto momentum = options.momentum()) own.momentum = *momentum;
  return own;
}

Tensor BatchNormImpl::forward(const Tensor& input) {
  _check_input_dim(input);
  if (synchronized_ && is_training()) return SynchronizedNorm::forward(synchronized_, input);
  return local_batch_norm(tensors(), options, is_training(), input);
}

void BatchNormImpl::_check_input_dim(const Tensor& input) {
  TORCH_CHECK(input.dim() == 4, "batch norm of images takes [n, channels, height, width], not ", input.sizes());
}

}  // namespace remuda::train
