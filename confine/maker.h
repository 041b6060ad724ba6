// Maker: whose runtime drives a device, where that decides what a job has to be told.
#pragma once

#include "device/device.h"

namespace remuda::confine {

enum class Maker { nvidia, amd, other };

/// By the vendor's name, short or long, in any case. Pure.
Maker maker_of(const Device& device);

}  // namespace remuda::confine
