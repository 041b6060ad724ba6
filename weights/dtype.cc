#include "weights/dtype.h"

#include <array>

namespace remuda::weights {
namespace {

struct Known {
  const char* name;
  size_t bytes;
};

// In the order of the enumerators.
constexpr std::array kKnown{
    Known{"BOOL", 1}, Known{"U8", 1},  Known{"I8", 1},  Known{"F8_E4M3", 1}, Known{"F8_E5M2", 1},
    Known{"U16", 2},  Known{"I16", 2}, Known{"F16", 2}, Known{"BF16", 2},    Known{"U32", 4},
    Known{"I32", 4},  Known{"F32", 4}, Known{"U64", 8}, Known{"I64", 8},     Known{"F64", 8},
};

}  // namespace

const char* name_of(DType type) { return kKnown.at(static_cast<size_t>(type)).name; }

size_t size_of(DType type) { return kKnown.at(static_cast<size_t>(type)).bytes; }

std::optional<DType> dtype_named(std::string_view name) {
  for (size_t i = 0; i < kKnown.size(); ++i)
    if (name == kKnown[i].name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace remuda::weights
