#include "base/env.h"

#include <array>
#include <cstdlib>
#include <fmt/format.h>

#include "base/number.h"

namespace remuda::env {
namespace {
constexpr std::array kAll{rank,
                          world_size,
                          master_addr,
                          master_port,
                          secret,
                          listen_fd,
                          events_fd,
                          transport,
                          bind,
                          connect_timeout,
                          openblas_coretype,
                          home,
                          state_home,
                          tmpdir,
                          no_color,
                          term,
                          virtual_env,
                          cuda_device_order,
                          update_golden,
                          probe_timeout,
                          test_nvml,
                          test_nvml_faults,
                          path,
                          shell,
                          job,
                          job_pool,
                          job_devices,
                          omp_num_threads,
                          ompi_local_rank,
                          mpi_local_rank,
                          pmi_local_rank,
                          slurm_local_rank,
                          local_rank};
}

std::span<const Variable> all() { return kAll; }

std::optional<std::string> get(const Variable& variable) {
  const char* value = std::getenv(variable.name);
  if (!value) return std::nullopt;
  return value;
}

Result<int> get_int(const Variable& variable, int low, int high) {
  const std::string text = get(variable).value_or("");
  const auto value = parse_number<int>(text);
  if (!value || *value < low || *value > high)
    return usage_error(fmt::format("{} is '{}'; it must be a number from {} to {} ({})", variable.name, text, low, high,
                                   variable.meaning));
  return *value;
}

}  // namespace remuda::env
