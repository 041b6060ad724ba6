// Starting, stopping, versions, texts of error codes.
#include <charconv>

#include "tests/nvml/answer.h"

namespace remuda::tests::nvml {
namespace {

/// "12.4" as 12040.
int runtime_number(const std::string& version) {
  int major = 0, minor = 0;
  const char* end = version.data() + version.size();
  const auto [dot, error] = std::from_chars(version.data(), end, major);
  if (error == std::errc{} && dot != end) std::from_chars(dot + 1, end, minor);
  return 1000 * major + 10 * minor;
}

template <typename Body>
Code ask_driver(const void* out, Body body) {
  const Machine* machine = Session::instance().machine();
  if (!machine) return kUninitialized;
  return out ? body(machine->driver()) : kInvalidArgument;
}

Code give_runtime(int* version) {
  return ask_driver(version, [&](const Driver& driver) {
    if (!driver.runtime_version.has_value()) return code_of(driver.runtime_version.missing());
    *version = runtime_number(driver.runtime_version.value());
    return kSuccess;
  });
}

}  // namespace

NVML_EXPORT Code nvmlInit() { return Session::instance().start(); }
NVML_EXPORT Code nvmlInit_v2() { return Session::instance().start(); }
NVML_EXPORT Code nvmlInitWithFlags(unsigned) { return Session::instance().start(); }
NVML_EXPORT Code nvmlShutdown() { return Session::instance().stop(); }

NVML_EXPORT Code nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return ask_driver(version, [&](const Driver& driver) { return give_reading(driver.version, version, length); });
}

NVML_EXPORT Code nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return ask_driver(version,
                    [&](const Driver& driver) { return give_reading(driver.library_version, version, length); });
}

NVML_EXPORT Code nvmlSystemGetCudaDriverVersion(int* version) { return give_runtime(version); }
NVML_EXPORT Code nvmlSystemGetCudaDriverVersion_v2(int* version) { return give_runtime(version); }

NVML_EXPORT const char* nvmlErrorString(Code code) {
  switch (code) {
    case kSuccess:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kTimeout:
      return "Timeout";
    case kFunctionNotFound:
      return "Function Not Found";
    case kGpuIsLost:
      return "GPU is lost";
    case kVersionMismatch:
      return "Driver/library version mismatch";
    case kInUse:
      return "In use by another client";
    case kInsufficientResources:
      return "Insufficient Resources";
    case kNoData:
      return "No data";
    case kArgumentVersionMismatch:
      return "Argument version mismatch";
    case kUnknown:
      break;
  }
  return "Unknown Error";
}

}  // namespace remuda::tests::nvml
