#include "workers/blas.h"

namespace remuda::workers {

CpuFeatures cpu_features() {
#ifdef __x86_64__
  return {.avx2 = __builtin_cpu_supports("avx2") != 0,
          .fma = __builtin_cpu_supports("fma") != 0,
          .avx512f = __builtin_cpu_supports("avx512f") != 0,
          .avx512dq = __builtin_cpu_supports("avx512dq") != 0,
          .avx512bw = __builtin_cpu_supports("avx512bw") != 0,
          .avx512vl = __builtin_cpu_supports("avx512vl") != 0};
#else
  return {};
#endif
}

const char* openblas_kernels(const CpuFeatures& cpu) {
  if (cpu.avx512f && cpu.avx512dq && cpu.avx512bw && cpu.avx512vl) return "SkylakeX";
  if (cpu.avx2 && cpu.fma) return "Haswell";
  return nullptr;
}

}  // namespace remuda::workers
