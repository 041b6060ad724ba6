#include "train/process_tuning.h"

#include <ATen/Parallel.h>
#include <cstdlib>
#include <dlfcn.h>
#include <malloc.h>

#include "base/env.h"

namespace remuda::train {
namespace {

using SetThreads = void (*)(int);

/// Of a library that libtorch may have been built with; nullptr where it was not.
SetThreads find(const char* function) { return reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, function)); }

void set_openmp_threads(int count) {
  static const SetThreads set = find("omp_set_num_threads");
  if (set) set(count);
}

}  // namespace

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

void use_one_blas_thread() {
  if (env::get(env::openblas_num_threads)) return;
  if (const SetThreads set = find("openblas_set_num_threads")) set(1);
}

// 8 blocks of 4096 KiB: of the two sizes that NVIDIA names for this ("cuBLAS, 2.1.4 Results Reproducibility"), the fast
// one.
void use_one_cublas_workspace() { ::setenv(env::cublas_workspace.name, ":4096:8", /*overwrite=*/0); }

// libtorch sets OpenMP's number when a thread first asks for it, so it is asked first. at::set_num_threads() would
// change what new threads of the process begin with, too.
OneThreadHere::OneThreadHere() : before_(at::get_num_threads()) { set_openmp_threads(1); }
OneThreadHere::~OneThreadHere() { set_openmp_threads(before_); }

}  // namespace remuda::train
