// An MPI program, started like a solver: collects the devices that each rank may use, prints them, and fails unless
// each rank has some that no other rank has.
#include <array>
#include <cstdio>
#include <mpi.h>
#include <set>
#include <string>
#include <vector>

#include "base/env.h"

namespace {

constexpr size_t kLongest = 128;

std::string visible_devices() {
  return remuda::env::get({"CUDA_VISIBLE_DEVICES", "what a program may use"}).value_or("all");
}

bool print_and_compare(const std::vector<char>& gathered) {
  std::set<std::string> seen;
  for (size_t at = 0; at < gathered.size(); at += kLongest) {
    const std::string devices(&gathered[at]);
    std::printf("rank %zu of %zu: %s\n", at / kLongest, gathered.size() / kLongest, devices.c_str());
    if (devices.empty() || !seen.insert(devices).second) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::array<char, kLongest> own{};
  std::snprintf(own.data(), own.size(), "%s", visible_devices().c_str());
  std::vector<char> gathered(rank == 0 ? kLongest * static_cast<size_t>(ranks) : 0);
  MPI_Gather(own.data(), kLongest, MPI_CHAR, gathered.data(), kLongest, MPI_CHAR, 0, MPI_COMM_WORLD);
  int differ = rank == 0 && print_and_compare(gathered);
  MPI_Bcast(&differ, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return differ ? 0 : 1;
}
