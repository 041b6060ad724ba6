// Which driver serves which CUDA runtime. Data, with its source.
//
// Source, read in November 2026: NVIDIA, "CUDA Compatibility", minor version compatibility, tables 1 and 2,
// docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html; the exact figure of 12.x is that of the
// release notes of CUDA 12, docs.nvidia.com/cuda/cuda-toolkit-release-notes.
// From CUDA 11 on, a runtime works with any driver that serves an earlier minor version of the same major one; but such
// a driver cannot compile PTX that is newer than itself. Any newer driver serves any older runtime.
#pragma once

#include <array>

namespace remuda::doctor {

struct CudaDriver {
  const char* runtime;  ///< a major version, or major.minor where each minor has its own
  const char* driver;   ///< the oldest driver of Linux that serves it
};

/// Newest first.
inline constexpr std::array kCudaDrivers{
    CudaDriver{"13", "580"},      CudaDriver{"12", "525.60.13"}, CudaDriver{"11", "450.80.02"},
    CudaDriver{"10.2", "440.33"}, CudaDriver{"10.1", "418.39"},  CudaDriver{"10.0", "410.48"},
};

}  // namespace remuda::doctor
