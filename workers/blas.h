// Which of OpenBLAS's kernels suit the CPU.
//
// A library older than the CPU does not know it and falls back to its SSE3 kernels, 4 to 25 times too slow; shares
// measured with those would be wrong. OPENBLAS_CORETYPE names the kernels, and must be set before the library loads.
#pragma once

namespace remuda::workers {

/// The instruction sets by which the kernels differ.
struct CpuFeatures {
  bool avx2 = false, fma = false;
  bool avx512f = false, avx512dq = false, avx512bw = false, avx512vl = false;
};

/// Of the CPU this runs on; none on CPUs other than x86-64.
CpuFeatures cpu_features();

/// The value for OPENBLAS_CORETYPE, or null when OpenBLAS's own choice is as good. Pure.
const char* openblas_kernels(const CpuFeatures& cpu);

}  // namespace remuda::workers
