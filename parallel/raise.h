// From the project's Result to the exceptions that users of libtorch expect.
#pragma once

#include <utility>

#include "base/result.h"
#include "parallel/parallel.h"

namespace remuda::parallel {

[[noreturn]] void raise(const remuda::Error& error);
[[noreturn]] void raise_usage(const std::string& sentence);

/// The value, or its error as an exception.
template <typename T>
T or_raise(Result<T> result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace remuda::parallel
