#include "train/process_tuning.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <malloc.h>

#include "base/env.h"

namespace remuda::train {
namespace {

/// Of a library that libtorch may have been built with.
void call_with_one(const char* function) {
  using SetThreads = void (*)(int);
  if (const auto set = reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, function))) set(1);
}

}  // namespace

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

void use_one_blas_thread() {
  if (!env::get(env::openblas_num_threads)) call_with_one("openblas_set_num_threads");
}

void use_one_thread_here() {
  at::get_num_threads();  // libtorch sets OpenMP's number when a thread first computes, so that has to be over
  call_with_one("omp_set_num_threads");
}

}  // namespace remuda::train
