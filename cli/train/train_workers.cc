#include "cli/train/train_workers.h"

#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "base/check.h"
#include "base/env.h"
#include "workers/ranks.h"

namespace remuda::cli {
namespace {

constexpr auto kProgram = "remuda-train";

}  // namespace

Result<std::string> worker_program() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return failed(fmt::format("cannot find {}: /proc/self/exe: {}", kProgram, error.message()));
  std::string path = folder / kProgram;
  if (::access(path.c_str(), X_OK) == 0) return path;
  return failed(fmt::format("{} is not beside remuda in {}: this build has no libtorch", kProgram, folder.string()));
}

Result<std::vector<workers::RankSpec>> worker_ranks(const std::string& program, const job::ParsedJob& job,
                                                    const Inventory& inventory, const workers::Listener& listener,
                                                    const std::string& transport, int trace_fd) {
  workers::Rendezvous rendezvous{.world_size = static_cast<int>(job.job.devices.size()),
                                 .port = listener.port,
                                 .run_id = fmt::format("remuda-{}-{}", inventory.host, ::getpid()),
                                 .transport = transport};
  REMUDA_ASSIGN(rendezvous.secret, workers::make_secret());
  std::vector<workers::RankSpec> ranks;
  for (const auto& spec : job.job.devices) {
    const Device* device = inventory.find(spec.use);
    REMUDA_CHECK(device, "the job's devices were chosen from the inventory");
    const int rank = static_cast<int>(ranks.size());
    process::ProcessSpec process{.argv = {program, "-"},
                                 .environment = rank_environment(rendezvous, rank, device->cores.value_or({}).size()),
                                 .affinity = {.cores = device->cores.value_or({})},
                                 .must_bind = true};
    if (rank == 0) {
      process.inherited = {listener.socket.get()};
      process.environment.emplace_back(env::listen_fd.name, std::to_string(listener.socket.get()));
      if (trace_fd >= 0) {
        process.inherited.push_back(trace_fd);
        process.environment.emplace_back(env::trace_fd.name, std::to_string(trace_fd));
      }
    }
    ranks.push_back({spec.use, std::move(process), job.text});
  }
  return ranks;
}

}  // namespace remuda::cli
