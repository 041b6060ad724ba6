// Elements: of which type the values of a call are, as data, so that one function serves all types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/parts.h"

namespace remuda::comm {

enum class Element : uint16_t { bytes, int64, float64, float32, float16, bfloat16 };

/// "float32".
const char* name_of(Element type);
size_t size_of(Element type);
/// The type in which values of this one are added up, and which the sum has: float32 for those of 16 bits.
Element sum_of(Element type);

/// IEEE 754 binary16, and the upper half of a binary32: as libtorch and others lay them out.
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

template <typename T>
inline constexpr Element kElement = Element::bytes;
template <>
inline constexpr Element kElement<int64_t> = Element::int64;
template <>
inline constexpr Element kElement<double> = Element::float64;
template <>
inline constexpr Element kElement<float> = Element::float32;
template <>
inline constexpr Element kElement<Float16> = Element::float16;
template <>
inline constexpr Element kElement<BFloat16> = Element::bfloat16;

/// Elements that lie one after the other.
struct Values {
  Element type = Element::bytes;
  std::span<std::byte> bytes;

  Values() = default;
  Values(Element element, std::span<std::byte> place) : type(element), bytes(place) {}
  template <typename T>
  Values(std::span<T> values) : type(kElement<T>), bytes(std::as_writable_bytes(values)) {}

  size_t count() const { return bytes.size() / size_of(type); }
  Values part(Chunk chunk) const {
    return {type, bytes.subspan(chunk.begin * size_of(type), chunk.size() * size_of(type))};
  }
};

}  // namespace remuda::comm
