// The types that the elements of a tensor in a file of weights may have.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace remuda::weights {

/// As safetensors names them: BOOL, U8, I8, F8_E4M3, F8_E5M2, U16, I16, F16, BF16, U32, I32, F32, U64, I64, F64.
enum class DType { boolean, u8, i8, f8_e4m3, f8_e5m2, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64 };

const char* name_of(DType type);
std::optional<DType> dtype_named(std::string_view name);
/// Bytes of one element.
size_t size_of(DType type);

}  // namespace remuda::weights
