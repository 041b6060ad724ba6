// Tests only: the library of collectives for the stand-in's devices, which pass for CUDA's: see
// comm/testing/standin_library.h.
#pragma once

#include "comm/testing/standin_library.h"

namespace remuda::train::testing {

/// For all ranks that join from now on.
void use_standin_library(const comm::LibraryFaults& faults = {});

}  // namespace remuda::train::testing
