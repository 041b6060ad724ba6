// Maker: whose runtime a device uses, where that decides which variables a job needs.
#pragma once

#include "device/device.h"

namespace remuda::confine {

enum class Maker { nvidia, amd, other };

/// By the vendor's name, short or long, in any case. Pure.
Maker maker_of(const Device& device);

}  // namespace remuda::confine
