#include "train/process_tuning.h"

#include <dlfcn.h>
#include <malloc.h>

#include "base/env.h"

namespace remuda::train {

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

void use_one_blas_thread() {
  if (env::get(env::openblas_num_threads)) return;
  using SetThreads = void (*)(int);
  if (const auto set = reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) set(1);
}

}  // namespace remuda::train
