// Asking: one call of the library becomes one Reading. Internal to this folder.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/text.h"
#include "device/reading.h"
#include "probe/nvml/lib.h"
#include "probe/nvml/map.h"

namespace remuda::probe::nvml {

template <typename T>
inline constexpr bool kIsReading = false;
template <typename T>
inline constexpr bool kIsReading<Reading<T>> = true;

/// The reading with `change` applied to its value; `change` may return a reading, too.
template <typename T, typename Change>
auto then(const Reading<T>& reading, Change change) {
  using Changed = decltype(change(reading.value()));
  using Answer = std::conditional_t<kIsReading<Changed>, Changed, Reading<Changed>>;
  return reading.has_value() ? Answer(change(reading.value())) : Answer(reading.missing());
}

/// What `call(arguments..., &out)` writes. `what` names it in the sentence that says why it is missing. The library
/// sets all bits for "not available".
template <typename Out, typename... Parameters, typename... Arguments>
Reading<Out> ask(std::string_view what, Code (*call)(Parameters...), Arguments... arguments) {
  if (!call) return no_call(what);
  Out out{};
  if (const Code code = call(arguments..., &out); code != kSuccess) return why(code, what);
  if constexpr (std::is_unsigned_v<Out>)
    if (out == std::numeric_limits<Out>::max()) return why(kNotSupported, what);
  return out;
}

/// Text that `call(arguments..., buffer, size)` writes, fit for a terminal.
template <typename... Parameters, typename... Arguments>
Reading<std::string> ask_text(std::string_view what, Code (*call)(Parameters...), Arguments... arguments) {
  constexpr unsigned kSize = 96;  // the longest of the buffers its documentation names
  if (!call) return no_call(what);
  std::array<char, kSize + 1> buffer{};
  if (const Code code = call(arguments..., buffer.data(), kSize); code != kSuccess) return why(code, what);
  if (buffer.front() == '\0') return why(kNotSupported, what);
  return printable(buffer.data());
}

/// A struct with a version word. A driver that knows only another version returns an error for it, and has its older
/// call.
template <typename Out>
Reading<Out> ask_versioned(std::string_view what, Code (*call)(Handle, Out*), Handle handle, Out out,
                           unsigned version) {
  if (!call) return no_call(what);
  out.version = version_word<Out>(version);
  const Code code = call(handle, &out);
  if (code != kSuccess) return why(code, what);
  return out;
}

/// A count or a size in our signed types; one that does not fit, which no real device has, counts as not supported.
template <typename To, typename From>
Reading<To> fitting(std::string_view what, const Reading<From>& reading) {
  return then(reading, [&](From value) -> Reading<To> {
    if (!std::in_range<To>(value)) return why(kNotSupported, what);
    return static_cast<To>(value);
  });
}

/// Percent as a share of 1.
inline Reading<double> share(std::string_view what, unsigned percent) {
  if (percent > 100) return no_sense(what);
  return percent / 100.0;
}

}  // namespace remuda::probe::nvml
