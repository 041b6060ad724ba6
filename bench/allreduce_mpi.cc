// The OpenMPI side of `./dev bench allreduce`: mpirun -np 2 allreduce_mpi BYTES...
// Prints {"bytes":B,"seconds":T} per size; timed as repeat.h says.

#define OMPI_SKIP_MPICXX 1
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <vector>

#include "bench/pair.h"
#include "bench/repeat.h"

using namespace remuda::bench;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  pin_to(pair_cores()[rank]);
  for (int i = 1; i < argc; ++i) {
    std::vector<float> values(std::strtoull(argv[i], nullptr, 10) / sizeof(float));
    const auto prepare = [&] {
      std::ranges::fill(values, 1.0f);
      MPI_Barrier(MPI_COMM_WORLD);
    };
    const auto call = [&] {
      MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    const auto agree = [](int times) {
      MPI_Bcast(&times, 1, MPI_INT, 0, MPI_COMM_WORLD);
      return times;
    };
    double seconds = median_s(remuda::bench::kSecondsPerFigure, prepare, call, agree);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) std::printf("{\"bytes\":%s,\"seconds\":%.9f}\n", argv[i], seconds);
  }
  MPI_Finalize();
}
