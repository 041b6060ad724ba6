// How long a struct is as JSON, by its field list (device/fields.h), without making that: whatever field comes to be is
// counted.
#pragma once

#include <cstring>
#include <string>

#include "device/fields.h"

namespace remuda::fields {

/// At least the bytes of to_line(write(value)), and not many more. Texts are taken to be as printable() leaves them.
template <typename T>
size_t json_size(const T& value);

struct Sizer {
  size_t bytes = 2;  ///< {}

  template <typename T>
  void operator()(const char* key, const T& value, const char*, bool required = false) {
    constexpr size_t kAround = 4;  // "":,
    const size_t inner = json_size(value);
    if (required || !is_left_out(value, inner)) bytes += std::strlen(key) + kAround + inner;
  }

  template <typename T>
  static bool is_left_out(const T& value, size_t inner) {
    if constexpr (Listed<T>)
      return inner == Sizer{}.bytes;
    else
      return Writer::is_empty(value);
  }
};

inline size_t size_of_text(const std::string& text) {
  size_t bytes = 2 + text.size();
  for (const char c : text) bytes += c == '"' || c == '\\' || c == '\t' ? 1 : 0;
  return bytes;
}

template <typename T>
size_t json_size(const T& value) {
  constexpr size_t kNumber = 25, kAroundReading = 48;
  if constexpr (kIsReading<T>) {
    if (!value.has_value()) return kAroundReading + size_of_text(value.missing().detail);
    return kAroundReading + json_size(value.value());
  } else if constexpr (kIsList<T>) {
    size_t bytes = 2;
    for (const auto& entry : value) bytes += json_size(entry) + 1;
    return bytes;
  } else if constexpr (Listed<T>) {
    Sizer sizer;
    T::fields(value, sizer);
    return sizer.bytes;
  } else if constexpr (std::is_enum_v<T>) {
    return 2 + std::strlen(to_string(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return size_of_text(value);
  } else {
    return kNumber;
  }
}

}  // namespace remuda::fields
