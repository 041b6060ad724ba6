// Tests only: IDX, gzip and token files, right and wrong ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace remuda::data {

/// The header of an IDX file of unsigned bytes.
std::string idx_header(const std::vector<uint32_t>& dimensions);
/// The header and `count` values 0, 1, 2, ... modulo `modulus`.
std::string idx(const std::vector<uint32_t>& dimensions, size_t count, int modulus = 256);
/// As gzip packs it.
std::string gzip(std::string_view bytes);
/// Little-endian uint16.
std::string token_bytes(const std::vector<int>& tokens);

}  // namespace remuda::data
