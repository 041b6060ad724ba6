// Every environment variable remuda reads, in one list. Nothing else in the project calls getenv.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace remuda::env {

struct Variable {
  const char* name;
  const char* meaning;
};

// What torchrun sets, and `remuda train` with it.
inline constexpr Variable rank{"RANK", "this process's rank in the job"};
inline constexpr Variable world_size{"WORLD_SIZE", "number of ranks in the job"};
inline constexpr Variable master_addr{"MASTER_ADDR", "address of rank 0"};
inline constexpr Variable master_port{"MASTER_PORT", "port of rank 0"};

// What `remuda train` tells its workers.
inline constexpr Variable secret{"REMUDA_SECRET", "the job's secret; every connection between ranks must prove it"};
inline constexpr Variable listen_fd{"REMUDA_LISTEN_FD", "rank 0's listening socket, inherited and bound already"};
inline constexpr Variable events_fd{"REMUDA_EVENTS_FD", "where a worker writes its events, a JSON line each"};
inline constexpr Variable transport{"REMUDA_TRANSPORT", "how ranks exchange data: auto, shm or tcp; auto unless set"};
inline constexpr Variable bind{"REMUDA_BIND", "address a rank listens on; 127.0.0.1 unless set"};

// What the user may set.
inline constexpr Variable connect_timeout{"REMUDA_CONNECT_TIMEOUT",
                                          "seconds ranks wait for each other at the start; 60 unless set"};
inline constexpr Variable openblas_coretype{"OPENBLAS_CORETYPE", "OpenBLAS kernels; chosen from the CPU unless set"};
inline constexpr Variable home{"HOME", "the user's folder"};
inline constexpr Variable state_home{"XDG_STATE_HOME", "where pools and figures are kept; ~/.local/state unless set"};
inline constexpr Variable tmpdir{"TMPDIR", "where scratch files go; /tmp unless set"};
inline constexpr Variable no_color{"NO_COLOR", "no colour in output when set and not empty"};
inline constexpr Variable term{"TERM", "dumb: no colour, no progress bar"};
inline constexpr Variable virtual_env{"VIRTUAL_ENV", "the active virtual environment of Python"};
inline constexpr Variable cuda_device_order{"CUDA_DEVICE_ORDER",
                                            "how CUDA numbers GPUs: FASTEST_FIRST unless set to PCI_BUS_ID"};
inline constexpr Variable probe_timeout{"REMUDA_PROBE_TIMEOUT", "seconds a device may take to answer; 5 unless set"};

inline constexpr Variable path{"PATH", "where programs are looked for"};
inline constexpr Variable shell{"SHELL", "the user's shell, for `remuda hold`"};

// What `remuda run` tells a job; `remuda bind` and `remuda release` read it.
inline constexpr Variable job{"REMUDA_JOB", "number of the job that this process belongs to"};
inline constexpr Variable job_pool{"REMUDA_POOL", "folder of the pool that the job is in"};
inline constexpr Variable job_devices{"REMUDA_DEVICES", "ids of the devices a job was granted"};

inline constexpr Variable omp_num_threads{
    "OMP_NUM_THREADS", "threads of a rank; its part of the CPUs with `remuda run --each` unless set"};

// What MPI's launchers tell a process, for `remuda bind`: which one of this machine it is.
inline constexpr Variable ompi_local_rank{"OMPI_COMM_WORLD_LOCAL_RANK", "rank within the machine, from OpenMPI"};
inline constexpr Variable mpi_local_rank{"MPI_LOCALRANKID", "rank within the machine, from MPICH and Intel MPI"};
inline constexpr Variable pmi_local_rank{"PMI_LOCAL_RANK", "rank within the machine, from PMI"};
inline constexpr Variable slurm_local_rank{"SLURM_LOCALID", "rank within the machine, from Slurm"};
inline constexpr Variable local_rank{"LOCAL_RANK", "rank within the machine, from torchrun and `remuda run --each`"};

// What tests read.
inline constexpr Variable update_golden{"REMUDA_UPDATE_GOLDEN", "1: tests rewrite the files they compare with"};

// What the test-only library of tests/nvml reads.
inline constexpr Variable test_nvml{"REMUDA_TEST_NVML", "inventory file of the machine that the test library plays"};
inline constexpr Variable test_nvml_faults{"REMUDA_TEST_NVML_FAULTS",
                                           "what the test library does wrong, as in lost=2,hang=3"};

/// Every variable above, for documentation and tests.
std::span<const Variable> all();

std::optional<std::string> get(const Variable& variable);
/// The value as an integer in [low, high]; an error naming the variable otherwise, also when it is not set.
Result<int> get_int(const Variable& variable, int low, int high);

}  // namespace remuda::env
