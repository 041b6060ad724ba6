// The parts of every exported function: check that the device exists and the reading has a value, then write it.
#pragma once

#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "tests/nvml/session.h"

namespace remuda::tests::nvml {

inline Code code_of(const Missing& missing) {
  switch (missing.reason) {
    case MissingReason::unsupported:
      return kNotSupported;
    case MissingReason::denied:
      return kNoPermission;
    case MissingReason::lost:
      return kGpuIsLost;
    case MissingReason::stale:
      return kNoData;
    case MissingReason::no_driver:
      return kDriverNotLoaded;
  }
  return kUnknown;
}

/// "3g.20gb" is three slices of the GPU, all of them computing; of "1c.3g.20gb" one computes.
struct Slices {
  unsigned gpu = 0, compute = 0;
};
Slices slices_of(const std::string& profile);

/// Null when any of the pointers is.
template <typename First, typename... Rest>
const void* all(const First* first, const Rest*... rest) {
  return ((rest != nullptr) && ...) ? first : nullptr;
}

/// `body(gpu)` when the handle is valid and the pointers for the answer are not null.
template <typename Body>
Code ask(Handle handle, const void* out, Body body) {
  if (const Code code = admit(handle); code != kSuccess) return code;
  return out ? body(*Session::instance().newest(handle)) : kInvalidArgument;
}

/// A reading as a number in the caller's unit; `per_unit` of these make one unit of the reading.
template <typename T, typename Out>
Code give(const Reading<T>& reading, Out* out, double per_unit = 1) {
  if (!reading.has_value()) return code_of(reading.missing());
  if constexpr (std::is_floating_point_v<T>)
    *out = static_cast<Out>(std::llround(reading.value() * per_unit));
  else
    *out = static_cast<Out>(reading.value());
  return kSuccess;
}

inline Code give_text(std::string_view text, char* out, unsigned length) {
  if (text.size() + 1 > length) return kInsufficientSize;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return kSuccess;
}

inline Code give_reading(const Reading<std::string>& reading, char* out, unsigned length) {
  if (!reading.has_value()) return code_of(reading.missing());
  return give_text(std::string_view(reading.value()), out, length);
}

}  // namespace remuda::tests::nvml
