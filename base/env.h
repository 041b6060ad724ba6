// Every environment variable that remuda reads or sets, in one list. Nothing else in the project calls getenv, and no
// other file spells a variable's name.
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

/// The list: the name in code, the name in the environment, the meaning.
// clang-format off
#define REMUDA_VARIABLES(X) \
  /* What torchrun sets for each process, and remuda with it. */ \
  X(rank, "RANK", "this process's rank in the job") \
  X(world_size, "WORLD_SIZE", "number of ranks in the job") \
  X(master_addr, "MASTER_ADDR", "address of rank 0") \
  X(master_port, "MASTER_PORT", "port of rank 0") \
  X(local_rank, "LOCAL_RANK", "rank within the machine, from torchrun and `remuda run --each`") \
  X(local_world_size, "LOCAL_WORLD_SIZE", "number of ranks on this machine") \
  X(group_rank, "GROUP_RANK", "number of the machine; always 0") \
  X(group_world_size, "GROUP_WORLD_SIZE", "number of machines; always 1") \
  X(role_rank, "ROLE_RANK", "rank within the role; there is one role") \
  X(role_world_size, "ROLE_WORLD_SIZE", "number of ranks in the role") \
  X(role_name, "ROLE_NAME", "name of the role: default") \
  X(run_id, "TORCHELASTIC_RUN_ID", "names the run") \
  X(restart_count, "TORCHELASTIC_RESTART_COUNT", "how often the ranks were started again") \
  X(max_restarts, "TORCHELASTIC_MAX_RESTARTS", "how often they may be") \
  X(use_agent_store, "TORCHELASTIC_USE_AGENT_STORE", "False: rank 0 offers the store") \
  X(use_libuv, "USE_LIBUV", "0: PyTorch's store is offered without libuv, which not every build has") \
  /* What `remuda train` tells its workers. */ \
  X(secret, "REMUDA_SECRET", "the job's secret; every connection between ranks must prove it") \
  X(listen_fd, "REMUDA_LISTEN_FD", "rank 0's listening socket, inherited and bound already") \
  X(members_fd, "REMUDA_MEMBERS_FD", "where a worker hears which ranks are left when one was lost, a JSON line each") \
  X(events_fd, "REMUDA_EVENTS_FD", "where a worker writes its events, a JSON line each") \
  X(join, "REMUDA_JOIN", "HOST:PORT at which a run lets this rank join it, with `remuda train --join`") \
  X(step_times_fd, "REMUDA_STEP_TIMES_FD", "where rank 0 writes the times of each step, with `remuda train --step-times`") \
  X(claim_fd, "REMUDA_CLAIM_FD", "the folder of the run's checkpoints, which `remuda train` has claimed for all ranks of an elastic run") \
  X(transport, "REMUDA_TRANSPORT", "how ranks exchange data: auto, shm or tcp; auto unless set") \
  X(bind, "REMUDA_BIND", "address a rank listens on; 127.0.0.1 unless set") \
  X(torch_device, "REMUDA_TORCH_DEVICE", "libtorch's type of the one device that a rank sees: cpu, cuda (ROCm's too) or xpu; cpu unless set") \
  /* What the user may set. */ \
  X(connect_timeout, "REMUDA_CONNECT_TIMEOUT", "seconds ranks wait for each other at the start; 60 unless set") \
  X(openblas_num_threads, "OPENBLAS_NUM_THREADS", "threads of OpenBLAS; 1 in workers") \
  X(openblas_coretype, "OPENBLAS_CORETYPE", "OpenBLAS kernels; chosen from the CPU unless set") \
  X(aten_cpu_capability, "ATEN_CPU_CAPABILITY", "libtorch's CPU kernels: default, avx2 or avx512; the CPU's best unless set") \
  X(home, "HOME", "the user's folder") \
  X(state_home, "XDG_STATE_HOME", "where pools and figures are kept; ~/.local/state unless set") \
  X(data_home, "XDG_DATA_HOME", "where Jupyter finds a user's kernels, below jupyter/kernels; ~/.local/share unless set") \
  X(jupyter_data, "JUPYTER_DATA_DIR", "in place of that folder's jupyter") \
  X(tmpdir, "TMPDIR", "where scratch files go; /tmp unless set") \
  X(no_color, "NO_COLOR", "no colour in output when set and not empty") \
  X(term, "TERM", "dumb: no colour, no progress bar") \
  X(virtual_env, "VIRTUAL_ENV", "the active virtual environment of Python") \
  X(cublas_workspace, "CUBLAS_WORKSPACE_CONFIG", "workspaces of cuBLAS; one with which it gives the same bits each time with train.deterministic, unless set") \
  X(cuda_device_order, "CUDA_DEVICE_ORDER", "how CUDA numbers GPUs: FASTEST_FIRST unless set to PCI_BUS_ID") \
  X(probe_timeout, "REMUDA_PROBE_TIMEOUT", "seconds a device may take to answer; 5 unless set") \
  X(policy, "REMUDA_POLICY", "file with the policy of a pool of one's own; the pool for all users has /etc/remuda/policy.toml") \
  X(path, "PATH", "where programs are looked for") \
  X(shell, "SHELL", "the user's shell, for `remuda hold`") \
  X(agent, "REMUDA_AGENT", "socket of the agent to use, for any machine; unset: that of this machine, if it has one") \
  /* What systemd tells `remuda agent`. */ \
  X(listen_pid, "LISTEN_PID", "the process that inherits sockets") \
  X(listen_fds, "LISTEN_FDS", "how many") \
  /* What `remuda run` tells a job; `remuda bind` and `remuda release` read it. */ \
  X(job, "REMUDA_JOB", "number of the job that this process belongs to") \
  X(job_pool, "REMUDA_POOL", "folder of the pool that the job is in") \
  X(job_pool_id, "REMUDA_POOL_ID", "identity of that pool: another one under the same path has another") \
  X(job_devices, "REMUDA_DEVICES", "ids of the devices a job was granted") \
  X(job_cpus, "REMUDA_DEVICE_CPUS", "the CPUs of each of these devices that is a CPU device, as in 0-3;4-7") \
  X(job_shares, "REMUDA_SHARES", "the part of the work that each of these devices should get") \
  X(job_task, "REMUDA_TASK", "number of the task's line, with `remuda run --tasks`") \
  X(job_array, "REMUDA_ARRAY", "number of the array that the job is of, with `remuda run --array`") \
  X(run_fd, "REMUDA_RUN_FD", "descriptor of the file on which a run within the job says how it goes (docs/monitoring.md)") \
  X(job_array_index, "REMUDA_ARRAY_INDEX", "the job's index in its array") \
  /* What it tells the command of `--at-end`. */ \
  X(ended_job, "REMUDA_ENDED_JOB", "the job that has ended: 12, or 5.7 for index 7 of array 5") \
  X(ended_name, "REMUDA_ENDED_NAME", "what it was called") \
  X(ended_how, "REMUDA_ENDED_HOW", "done, failed or cancelled") \
  X(ended_status, "REMUDA_ENDED_STATUS", "its exit status, as `remuda wait` gives it") \
  X(ended_why, "REMUDA_ENDED_WHY", "how it ended, in a sentence") \
  X(ended_log, "REMUDA_ENDED_LOG", "file with its output, where it has one") \
  X(ended_submitted, "REMUDA_ENDED_SUBMITTED", "when it was submitted, in seconds since 1970") \
  X(ended_started, "REMUDA_ENDED_STARTED", "when it started; empty where it did not") \
  X(ended_at, "REMUDA_ENDED_AT", "when it ended") \
  /* What a command of `remuda watch --on-alert` learns. */ \
  X(alert_state, "REMUDA_ALERT_STATE", "begun or ended") \
  X(alert, "REMUDA_ALERT", "the alert as JSON: rule, device, since_s, value, limit, text, command") \
  X(alert_text, "REMUDA_ALERT_TEXT", "the alert in a sentence") \
  X(daemon, "REMUDA_DAEMON", "folder of the sharing daemon that this process is, or was started by") \
  X(omp_num_threads, "OMP_NUM_THREADS", "threads of a rank; its part of the CPUs with `remuda run --each` unless set") \
  /* By these a job sees the devices that it was granted, and no others (confine/visibility.h). */ \
  X(cuda_visible_devices, "CUDA_VISIBLE_DEVICES", "UUIDs of the GPUs that CUDA shows") \
  X(rocr_visible_devices, "ROCR_VISIBLE_DEVICES", "UUIDs of the GPUs that ROCm shows") \
  X(hip_visible_devices, "HIP_VISIBLE_DEVICES", "numbers of those of them that HIP shows") \
  X(gpu_device_ordinal, "GPU_DEVICE_ORDINAL", "the same for OpenCL; taken away") \
  /* By these its processes reach a sharing daemon, and are kept to their part (share/mps.h). */ \
  X(mps_pipe_directory, "CUDA_MPS_PIPE_DIRECTORY", "where the daemon is reached") \
  X(mps_log_directory, "CUDA_MPS_LOG_DIRECTORY", "where it writes its logs") \
  X(mps_threads, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "part of the multiprocessors") \
  X(mps_memory, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "memory of each process") \
  /* What MPI's launchers tell a process, for `remuda bind`: which one of this machine it is. */ \
  X(ompi_local_rank, "OMPI_COMM_WORLD_LOCAL_RANK", "rank within the machine, from OpenMPI") \
  X(mpi_local_rank, "MPI_LOCALRANKID", "rank within the machine, from MPICH and Intel MPI") \
  X(pmi_local_rank, "PMI_LOCAL_RANK", "rank within the machine, from PMI") \
  X(slurm_local_rank, "SLURM_LOCALID", "rank within the machine, from Slurm") \
  /* And for `remuda train`: which one of the run it is, and where rank 0 is. */ \
  X(ompi_rank, "OMPI_COMM_WORLD_RANK", "rank in the run, from OpenMPI") \
  X(ompi_size, "OMPI_COMM_WORLD_SIZE", "number of ranks, from OpenMPI") \
  X(slurm_rank, "SLURM_PROCID", "rank in the step, from Slurm") \
  X(slurm_size, "SLURM_STEP_NUM_TASKS", "number of ranks in the step, from Slurm") \
  X(slurm_step, "SLURM_STEP_ID", "number of the step; a number only in what srun has started") \
  X(slurm_job, "SLURM_JOB_ID", "number of the allocation, from Slurm") \
  X(slurm_hosts, "SLURM_STEP_NODELIST", "hosts of the step, the one of rank 0 first") \
  /* What tests read. */ \
  X(claims, "REMUDA_CLAIMS", "claims on devices are seen only where this has the same value (pool/claim.h)") \
  X(update_golden, "REMUDA_UPDATE_GOLDEN", "1: tests rewrite the files they compare with") \
  /* What the test-only library of tests/nvml reads. */ \
  X(test_nvml, "REMUDA_TEST_NVML", "inventory file of the machine that the test library plays") \
  X(test_nvml_faults, "REMUDA_TEST_NVML_FAULTS", "what the test library does wrong, as in lost=2,hang=3")
// clang-format on

#define REMUDA_DECLARE(word, name, meaning) inline constexpr Variable word{name, meaning};
REMUDA_VARIABLES(REMUDA_DECLARE)
#undef REMUDA_DECLARE

/// All of them, for documentation and tests.
std::span<const Variable> all();

std::optional<std::string> get(const Variable& variable);
/// The value as an integer in [low, high]; an error naming the variable otherwise, also when it is not set.
Result<int> get_int(const Variable& variable, int low, int high);

/// The port of rank 0: MASTER_PORT, or the one beside it where torchrun's own store listens there.
Result<int> get_master_port();

}  // namespace remuda::env
