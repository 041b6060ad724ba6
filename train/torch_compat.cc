#include "train/torch_compat.h"

#include <ATen/Version.h>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

namespace remuda::train {
namespace {

/// The last four are of a maker's libraries, which allocate memory of their own: XBLAS_STATUS_ALLOC_FAILED, and
/// X_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, xStatusAllocFailed, xblas_status_memory_error.
constexpr const char* kAllocationFailures[] = {"DefaultCPUAllocator", "out of memory",     "_ALLOC_FAILED",
                                               "_ALLOCATION_FAILED",  "StatusAllocFailed", "_status_memory_error"};

/// After the operator's name, since 1.7.
constexpr std::string_view kNotDeterministic = " does not have a deterministic implementation";

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

std::string shape_text(const torch::Tensor& tensor) {
  return fmt::format("{} of shape [{}]", toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

std::string first_line(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  // A message of TorchScript's interpreter begins with a traceback, and ends with the cause.
  if (text.starts_with("The following operation failed")) {
    text.erase(text.find_last_not_of(" \n") + 1);
    text.erase(0, text.rfind('\n') + 1);
  }
  text.erase(std::min(text.find('\n'), text.size()));
  const size_t end = text.find(kNotDeterministic);
  if (end == std::string::npos) return text;
  const std::string before = text.substr(0, end);
  return fmt::format(
      "{} has no kernel on this device that gives the same bits each time (libtorch {}); leave "
      "train.deterministic out",
      before.substr(before.rfind(' ') + 1), TORCH_VERSION);
}

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) return true;
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  return std::ranges::any_of(kAllocationFailures, [&](const char* words) { return text.find(words) != text.npos; });
}

std::string kernels_of(torch::DeviceType device) {
  return fmt::format("{}, {}, libtorch {}", c10::DeviceTypeName(device, true), cpu_capability(), TORCH_VERSION);
}

}  // namespace remuda::train
