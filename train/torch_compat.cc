#include "train/torch_compat.h"

#include <ATen/Version.h>
#include <fmt/format.h>
#include <string_view>

namespace remuda::train {
namespace {

/// As in "AVX2". libtorch 1.13 has no function for it, but every version prints it.
std::string cpu_capability() {
  constexpr std::string_view kName = "CPU capability usage: ";
  const std::string config = at::show_config();
  const size_t at = config.find(kName);
  if (at == std::string::npos) return "unknown CPU capability";
  const size_t begin = at + kName.size();
  return config.substr(begin, config.find('\n', begin) - begin);
}

}  // namespace

std::string first_line(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

bool is_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) return true;
  return std::string(error.what_without_backtrace()).find("DefaultCPUAllocator") != std::string::npos;
}

std::string kernels_of(torch::DeviceType device) {
  return fmt::format("{}, {}, libtorch {}", c10::DeviceTypeName(device, true), cpu_capability(), TORCH_VERSION);
}

}  // namespace remuda::train
