#include "train/device/random_state.h"

#include <optional>

namespace remuda::train {
namespace {

/// The device's own default generator, where this libtorch has one for its type.
std::optional<at::Generator> generator_of(torch::Device device) {
  if (device.is_cpu()) return std::nullopt;
  try {
    return at::globalContext().defaultGenerator(device);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

}  // namespace

RandomState::RandomState(torch::Device device)
    : device_(device), host_(at::detail::getDefaultCPUGenerator().get_state()) {
  if (const auto own = generator_of(device_)) own_ = own->get_state();
}

void RandomState::restore() const {
  at::Generator host = at::detail::getDefaultCPUGenerator();
  host.set_state(host_);
  if (auto own = generator_of(device_); own && own_.defined()) own->set_state(own_);
}

}  // namespace remuda::train
