#include "train/precision.h"

#include <ATen/autocast_mode.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "train/agreement.h"
#include "train/device/vendor_runtime.h"
#include "train/labels.h"
#include "train/sum_trial.h"

namespace remuda::train {
namespace {

/// The first hardware with products of bfloat16, and of float16 worth using, as makers number it (10 x major + minor).
constexpr int kFirstBf16 = 80, kFirstFp16 = 70;

bool is_short(torch::ScalarType type) { return type == torch::kHalf || type == torch::kBFloat16; }

/// Whether this libtorch has autocast for the device and the type: 1.13 refuses float16 on CPUs, and for some types of
/// device it has none.
bool autocasts(torch::Device device, torch::ScalarType type) {
  const Autocast autocast(device, type);
  const auto one = torch::ones({1, 1}, device);
  return torch::linear(one, one).scalar_type() == type;
}

/// Of what has no number, or no such capability, nothing is held against it.
int capability_of(torch::Device device) {
  const int index =
      device.has_index() ? device.index() : c10::impl::VirtualGuardImpl(device.type()).getDevice().index();
  return index < 0 ? kFirstBf16 : device_capability(index).value_or(kFirstBf16);
}

bool can_compute_in(torch::Device device, torch::ScalarType type) {
  const int capability = device.is_cpu() ? kFirstBf16 : capability_of(device);
  if (capability < (type == torch::kBFloat16 ? kFirstBf16 : kFirstFp16)) return false;
  add_up_in_float32(at::globalContext());
  try {
    return autocasts(device, type) && adds_up_in_float32(device, type);
  } catch (const std::exception&) {
    return false;
  }
}

// libtorch 2.4 has one function for all types of device; before, each type has its own.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)

bool is_enabled(torch::DeviceType device) { return at::autocast::is_autocast_enabled(device); }
void enable(torch::DeviceType device, bool on) { at::autocast::set_autocast_enabled(device, on); }
torch::ScalarType type_of(torch::DeviceType device) { return at::autocast::get_autocast_dtype(device); }
void set_type(torch::DeviceType device, torch::ScalarType type) { at::autocast::set_autocast_dtype(device, type); }

#else

bool is_enabled(torch::DeviceType device) {
  if (device == torch::kCPU) return at::autocast::is_cpu_enabled();
  return device == torch::kXPU ? at::autocast::is_xpu_enabled() : at::autocast::is_enabled();
}
void enable(torch::DeviceType device, bool on) {
  if (device == torch::kCPU) return at::autocast::set_cpu_enabled(on);
  device == torch::kXPU ? at::autocast::set_xpu_enabled(on) : at::autocast::set_enabled(on);
}
torch::ScalarType type_of(torch::DeviceType device) {
  if (device == torch::kCPU) return at::autocast::get_autocast_cpu_dtype();
  return device == torch::kXPU ? at::autocast::get_autocast_xpu_dtype() : at::autocast::get_autocast_gpu_dtype();
}
void set_type(torch::DeviceType device, torch::ScalarType type) {
  if (device == torch::kCPU) return at::autocast::set_autocast_cpu_dtype(type);
  device == torch::kXPU ? at::autocast::set_autocast_xpu_dtype(type) : at::autocast::set_autocast_gpu_dtype(type);
}

#endif

}  // namespace

torch::ScalarType compute_type(job::Precision precision, torch::Device device, torch::ScalarType parameters) {
  if (parameters == torch::kDouble) return torch::kDouble;  // autocast leaves it alone
  std::vector<torch::ScalarType> wanted;
  if (precision == job::Precision::bf16) wanted = {torch::kBFloat16};
  if (precision == job::Precision::fp16) wanted = {torch::kHalf};
  // A CPU's products of float32 are as fast as those of bfloat16 in most libraries, or faster.
  if (precision == job::Precision::automatic && !device.is_cpu()) wanted = {torch::kBFloat16, torch::kHalf};
  for (const torch::ScalarType type : wanted)
    if (can_compute_in(device, type)) return type;
  return torch::kFloat;
}

void configure_arithmetic(const job::TrainSpec& spec) {
  const bool deterministic = spec.deterministic == job::Switch::on;
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(spec.tf32 == job::Tf32::on);
  context.setAllowTF32CuDNN(spec.tf32 != job::Tf32::off);
  add_up_in_float32(context);
  context.setBenchmarkCuDNN(spec.autotune == job::Switch::on);
  context.setDeterministicCuDNN(deterministic);
  set_deterministic(context, deterministic);
}

Result<std::vector<torch::ScalarType>> agree_on_precision(comm::Communicator& communicator, job::Precision precision,
                                                          torch::ScalarType mine) {
  REMUDA_ASSIGN(auto all, gather_all(communicator, mine, label::kPrecision));
  const bool by_name = precision == job::Precision::bf16 || precision == job::Precision::fp16;
  if (by_name && mine == torch::kDouble)
    return usage_error("train.precision is for models of float32, but this one's parameters are float64; leave it out");
  if (by_name && std::ranges::none_of(all, is_short))
    return usage_error(job::precision_refusal(precision, TORCH_VERSION));
  return all;
}

std::optional<torch::ScalarType> common_short_type(const std::vector<torch::ScalarType>& types) {
  const bool is_common = std::ranges::count(types, types.at(0)) == std::ssize(types);
  return is_common && is_short(types[0]) ? std::optional(types[0]) : std::nullopt;
}

Result<torch::ScalarType> gradient_type(job::Precision asked, torch::ScalarType parameters) {
  if (asked == job::Precision::fp32) return parameters;
  if (parameters == torch::kDouble)
    return usage_error("train.gradients is for models of float32, but this one's parameters are float64; leave it out");
  return torch::kBFloat16;
}

std::string precision_name(torch::ScalarType type) {
  if (type == torch::kDouble) return "float64";
  if (type == torch::kHalf) return "fp16";
  return type == torch::kBFloat16 ? "bf16" : "float32";
}

/// The type is set first: libtorch 1.13 throws for types it does not have, and would leave autocast on.
Autocast::Autocast(torch::Device device, torch::ScalarType type) : device_(device.type()), active_(is_short(type)) {
  if (!active_) return;
  before_ = type_of(device_);
  was_enabled_ = is_enabled(device_);
  set_type(device_, type);
  enable(device_, true);
  at::autocast::increment_nesting();
}

torch::ScalarType Autocast::type_on(torch::Device device) {
  return is_enabled(device.type()) ? type_of(device.type()) : torch::kFloat;
}

Autocast::~Autocast() {
  if (!active_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  enable(device_, was_enabled_);
  set_type(device_, before_);
}

torch::Tensor widened(const torch::Tensor& x) { return is_short(x.scalar_type()) ? x.to(torch::kFloat) : x; }

double LossScale::of(torch::ScalarType type, double units) const {
  return type == torch::kHalf ? scale_ * std::exp2(-std::round(std::log2(std::max(1.0, units)))) : 1;
}

bool LossScale::update(bool finite) {
  if (finite) {
    if (++finite_in_a_row_ < kGrowAfter) return true;
    finite_in_a_row_ = 0;
    scale_ = std::min(kMost, scale_ * 2);
    return true;
  }
  finite_in_a_row_ = 0;
  const bool is_least = scale_ <= kLeast;
  scale_ = std::max(kLeast, scale_ / 2);
  return !is_least;
}

}  // namespace remuda::train
