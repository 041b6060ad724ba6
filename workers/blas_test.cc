#include "workers/blas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::workers {
namespace {

constexpr CpuFeatures kAvx2{.avx2 = true, .fma = true};
constexpr CpuFeatures kAvx512{
    .avx2 = true, .fma = true, .avx512f = true, .avx512dq = true, .avx512bw = true, .avx512vl = true};

TEST(Blas, TakesTheWidestKernelsTheCpuCanRun) {
  EXPECT_STREQ(openblas_kernels(kAvx512), "SkylakeX");
  EXPECT_STREQ(openblas_kernels(kAvx2), "Haswell");
}

TEST(Blas, TakesNoKernelThatNeedsMoreThanTheCpuHas) {
  for (const auto missing :
       {&CpuFeatures::avx512f, &CpuFeatures::avx512dq, &CpuFeatures::avx512bw, &CpuFeatures::avx512vl}) {
    CpuFeatures cpu = kAvx512;
    cpu.*missing = false;
    EXPECT_STREQ(openblas_kernels(cpu), "Haswell");
  }
  EXPECT_EQ(openblas_kernels({.avx2 = true}), nullptr);
  EXPECT_EQ(openblas_kernels({}), nullptr);
}

}  // namespace
}  // namespace remuda::workers
