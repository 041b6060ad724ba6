// What makes a process compute fast on a CPU, whatever it was started with.
#pragma once

namespace remuda::train {

/// Large tensors come and go in every step. glibc would give their pages back and fault them in again each time, which
/// made training up to three times slower; so it is configured to keep them.
void keep_freed_memory();

/// OpenMP's threads and OpenBLAS's on the same cores slow each other down many times over: leaves them to OpenMP's,
/// unless the environment says how many OpenBLAS is to have. Nothing where libtorch uses another library.
void use_one_blas_thread();

/// cuBLAS gives the same bits each time only with a workspace of one size, which it learns from the environment when it
/// begins: sets that, unless the environment has it. Before other threads read the environment.
void use_one_cublas_workspace();

/// While it lives, libtorch's operations on the calling thread use no other threads: for what many threads do side by
/// side, and for what must have the same bits on each (a sum over several threads is rounded in another way).
class OneThreadHere {
 public:
  OneThreadHere();
  ~OneThreadHere();
  OneThreadHere(const OneThreadHere&) = delete;
  OneThreadHere& operator=(const OneThreadHere&) = delete;

 private:
  const int before_;
};

}  // namespace remuda::train
