#include "cli/train/train_workers.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <unistd.h>

#include "base/env.h"
#include "base/host_port.h"
#include "base/json.h"
#include "cli/train/train_devices.h"
#include "confine/rank_cores.h"
#include "confine/visibility.h"
#include "process/affinity.h"
#include "process/guarded_child.h"
#include "workers/event.h"
#include "workers/ranks.h"
#include "workers/secret.h"

namespace remuda::cli {
namespace {

constexpr auto kProgram = "remuda-train";

/// The process sees this device and no other, and knows what libtorch calls it.
void show_device(const Inventory& inventory, const std::string& id, process::ProcessSpec& process) {
  confine::Visibility seen = confine::visibility(inventory, {id});
  std::ranges::move(seen.set, std::back_inserter(process.environment));
  process.unset = std::move(seen.unset);
  process.environment.emplace_back(env::torch_device.name, confine::torch_device(*inventory.find(id)));
}

/// On a recorded machine those of this one, as no others are here.
std::vector<confine::RankCores> cores_of(const Workers& workers, const Inventory& inventory,
                                         const std::vector<std::string>& ids) {
  return confine::rank_cores(workers.live ? inventory : Inventory{}, ids, process::allowed_cores());
}

process::ProcessSpec worker_process(const Workers& workers, const Inventory& inventory, const std::string& id,
                                    const confine::RankCores& cores, process::Environment environment) {
  process::ProcessSpec process{.argv = {workers.program, "-"}, .environment = std::move(environment)};
  if (workers.live) {
    process.affinity.cores = cores.cores;
    process.must_bind = true;
  }
  show_device(inventory, id, process);
  return process;
}

void let_write_step_times(const Workers& workers, process::ProcessSpec& process) {
  process.inherited.push_back(workers.step_times_fd);
  process.environment.emplace_back(env::step_times_fd.name, std::to_string(workers.step_times_fd));
}

/// Whichever rank is the first, now or once others are lost, writes to the folder.
void let_share_claim(const Workers& workers, process::ProcessSpec& process) {
  process.inherited.push_back(workers.claim_fd);
  process.environment.emplace_back(env::claim_fd.name, std::to_string(workers.claim_fd));
}

/// Those that join from other hosts reach all ranks where the run has its door.
void listen_beside(const std::string& door, process::ProcessSpec& process) {
  const auto address = parse_host_port(door);
  if (address && !address->host.empty() && !env::get(env::bind))
    process.environment.emplace_back(env::bind.name, address->host);
}

/// What only rank 0 has.
void let_inherit(const Workers& workers, process::ProcessSpec& process) {
  process.inherited = {workers.listener.socket.get()};
  process.environment.emplace_back(env::listen_fd.name, std::to_string(workers.listener.socket.get()));
  if (workers.step_times_fd >= 0) let_write_step_times(workers, process);
}

}  // namespace

Result<std::string> worker_program() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return failed(fmt::format("cannot find {}: /proc/self/exe: {}", kProgram, error.message()));
  std::string path = folder / kProgram;
  if (::access(path.c_str(), X_OK) == 0) return path;
  return failed(fmt::format("{} is not beside remuda in {}: this build has no libtorch", kProgram, folder.string()));
}

std::optional<WorkerAbilities> worker_abilities() {
  constexpr double kPatience_s = 20;
  const auto program = worker_program();
  if (!program) return std::nullopt;
  auto child = process::GuardedChild::start([&](int socket) {
    ::dup2(socket, STDOUT_FILENO);
    ::execl(program->c_str(), kProgram, "--abilities", nullptr);
  });
  std::string text;
  if (!child || child->receive_all(kPatience_s, text) != process::GuardedChild::Received::end) return std::nullopt;
  const auto said = parse_json(text, kProgram);
  if (!said || !said->is_object() || !said->contains("cpu") || !(*said)["cpu"].is_array()) return std::nullopt;
  WorkerAbilities abilities{workers::text_field(*said, "torch"), {}};
  for (const Json& type : (*said)["cpu"])
    if (type.is_string()) abilities.cpu_types.push_back(type.get<std::string>());
  return abilities;
}

Result<std::vector<workers::RankSpec>> worker_ranks(const Workers& workers, const job::ParsedJob& job,
                                                    const Inventory& inventory) {
  workers::Rendezvous rendezvous{.world_size = static_cast<int>(job.job.devices.size()),
                                 .port = workers.listener.port,
                                 .run_id = fmt::format("remuda-{}-{}", inventory.host, ::getpid()),
                                 .transport = workers.transport};
  const std::string& door = job.job.elastic.join;
  REMUDA_ASSIGN(rendezvous.secret, door.empty() ? workers::make_secret() : users_secret());
  std::vector<std::string> ids;
  for (const auto& spec : job.job.devices) ids.push_back(chosen_device(inventory, spec.use).id);
  const std::vector<confine::RankCores> cores = cores_of(workers, inventory, ids);
  std::vector<workers::RankSpec> ranks;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int rank = static_cast<int>(i);
    process::ProcessSpec process =
        worker_process(workers, inventory, ids[i], cores[i], rank_environment(rendezvous, rank, cores[i].threads));
    if (rank == 0) let_inherit(workers, process);
    if (!door.empty()) listen_beside(door, process);
    if (workers.claim_fd >= 0) let_share_claim(workers, process);
    ranks.push_back({job.job.devices[i].use, std::move(process), job.text});
  }
  return ranks;
}

Result<workers::RankSpec> joining_worker(const Workers& workers, const job::ParsedJob& job, const Inventory& inventory,
                                         const std::string& run, const std::string& id) {
  const std::string host = parse_host_port(run).value_or(HostPort{}).host;
  workers::Rendezvous rendezvous{.transport = workers.transport};
  REMUDA_ASSIGN(rendezvous.secret, users_secret());
  const confine::RankCores cores = cores_of(workers, inventory, {id}).front();
  process::ProcessSpec process =
      worker_process(workers, inventory, id, cores, rank_environment(rendezvous, 0, cores.threads));
  process.environment.emplace_back(env::join.name, run);
  if (!env::get(env::bind)) {
    REMUDA_ASSIGN(std::string own, address_towards(host.empty() ? "127.0.0.1" : host));
    process.environment.emplace_back(env::bind.name, std::move(own));
  }
  return workers::RankSpec{job.job.devices.at(0).use, std::move(process), job.text};
}

Result<workers::RankSpec> launched_worker(const Workers& workers, const job::ParsedJob& job, const Inventory& inventory,
                                          const LaunchedRank& launched, const std::string& id) {
  workers::Rendezvous rendezvous{.world_size = launched.size,
                                 .port = launched.master_port,
                                 .run_id = launched.run_id,
                                 .transport = workers.transport,
                                 .master = launched.master_address};
  REMUDA_ASSIGN(rendezvous.secret, users_secret());
  const confine::RankCores cores = cores_of(workers, inventory, {id}).front();
  process::ProcessSpec process =
      worker_process(workers, inventory, id, cores, rank_environment(rendezvous, launched.rank, cores.threads));
  if (!env::get(env::bind)) {
    REMUDA_ASSIGN(std::string own, address_towards(launched.master_address));
    process.environment.emplace_back(env::bind.name, std::move(own));
  }
  if (launched.rank == 0 && workers.step_times_fd >= 0) let_write_step_times(workers, process);
  return workers::RankSpec{job.job.devices.at(launched.rank).use, std::move(process), job.text};
}

}  // namespace remuda::cli
