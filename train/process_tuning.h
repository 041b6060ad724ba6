// What makes a process compute fast on a CPU, whatever it was started with.
#pragma once

namespace remuda::train {

/// Large tensors come and go in every step. glibc would give their pages back and fault them in again each time, which
/// made training up to three times slower; so it is configured to keep them.
void keep_freed_memory();

/// OpenMP's threads and OpenBLAS's on the same cores slow each other down many times over: leaves them to OpenMP's,
/// unless the environment says how many OpenBLAS is to have. Nothing where libtorch uses another library.
void use_one_blas_thread();

/// Operations of libtorch on the calling thread use no other threads: for one of several that work side by side.
void use_one_thread_here();

}  // namespace remuda::train
