// CRC-32C (Castagnoli), as RFC 3720 has it.
#pragma once

#include <cstdint>
#include <string_view>

namespace remuda {

uint32_t crc32c(std::string_view bytes);

}  // namespace remuda
