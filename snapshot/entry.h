// Entries of JSON that others have written: runs of users, recordings, files. A value that is missing, or of another
// type, is what the caller says.
#pragma once

#include <string>
#include <type_traits>

#include "base/json.h"

namespace remuda::snapshot {

/// For strings, bools and numbers. `entry` is an object.
template <typename T>
T value_in(const Json& entry, const char* key, T otherwise = {}) {
  const auto found = entry.find(key);
  if (found == entry.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>)
    return found->is_string() ? found->get<T>() : otherwise;
  else if constexpr (std::is_same_v<T, bool>)
    return found->is_boolean() ? found->get<T>() : otherwise;
  else
    return found->is_number() ? found->get<T>() : otherwise;
}

}  // namespace remuda::snapshot
