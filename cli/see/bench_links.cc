#include "cli/see/bench_links.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/listener.h"
#include "cli/see/bench_results.h"
#include "cli/see/bench_table.h"
#include "cli/status_line.h"
#include "cli/train/train_workers.h"
#include "measure/memory.h"
#include "measure/shared_memory.h"
#include "measure/store.h"
#include "process/spawn.h"
#include "workers/ranks.h"
#include "workers/secret.h"
#include "workers/supervisor.h"

namespace remuda::cli {
namespace {

/// A measurement that is ready to start.
struct PreparedBench {
  Inventory inventory;
  measure::Plan plan;
  measure::SharedMemory memory;
  Listener listener;
  std::vector<workers::RankSpec> ranks;
};

/// The number of CPU devices needed so that every named cpu:N exists.
int cpu_devices_for(const std::vector<std::string>& names) {
  int count = 0;
  for (const std::string& name : names) count = std::max(count, cpu_index(name).value_or(-1) + 1);
  return count;
}

/// The machine, with its cores split where the named devices need that and no other number was given.
Result<Inventory> read_inventory(const BenchLinksFlags& flags) {
  REMUDA_ASSIGN(Inventory inventory, read_machine(flags.machine));
  if (flags.machine.cpu_devices > 0) return inventory;
  const int wanted = cpu_devices_for(flags.devices);
  if (wanted <= std::ranges::count(inventory.devices, DeviceKind::cpu, &Device::kind)) return inventory;
  return read_machine({.file = {}, .cpu_devices = wanted});
}

/// One process measures its matrix products with all cores of its device: OpenBLAS, too, may use them all, as nothing
/// else of the process runs meanwhile.
process::Environment environment_of(const workers::Rendezvous& rendezvous, int rank, size_t cores) {
  process::Environment environment = rank_environment(rendezvous, rank, std::max<size_t>(cores, 1));
  for (auto& [name, value] : environment)
    if (name == env::openblas_num_threads.name) value = std::to_string(std::max<size_t>(cores, 1));
  return environment;
}

workers::RankSpec rank_spec(const PreparedBench& bench, const std::string& program,
                            const workers::Rendezvous& rendezvous, int rank) {
  workers::RankSpec spec;
  std::vector<int> cores;
  for (const auto& device : bench.plan.devices) {
    if (device.rank != rank) continue;
    spec.device += (spec.device.empty() ? "" : ", ") + device.name;
    if (device.kind == DeviceKind::cpu) cores = device.cores;
  }
  spec.process = {.argv = {program, "--measure"},
                  .environment = environment_of(rendezvous, rank, cores.size()),
                  .affinity = {.cores = cores},
                  .must_bind = true,
                  .inherited = {bench.memory.fd()}};
  spec.input = to_line(measure::to_json(bench.plan));
  if (rank == 0) {
    spec.process.inherited.push_back(bench.listener.socket.get());
    spec.process.environment.emplace_back(env::listen_fd.name, std::to_string(bench.listener.socket.get()));
  }
  return spec;
}

Result<PreparedBench> prepare(const BenchLinksFlags& flags) {
  REMUDA_TRY(require_live(flags.machine, "measuring"));
  REMUDA_TRY(measure::check_measured_store());
  REMUDA_ASSIGN(const std::string program, worker_program());
  REMUDA_ASSIGN(Inventory inventory, read_inventory(flags));
  REMUDA_ASSIGN(const auto devices, devices_to_measure(inventory, flags.devices));
  measure::Plan plan = measure::make_plan(devices, flags.seconds, measure::buffer_bytes(devices.size()));
  REMUDA_ASSIGN(measure::SharedMemory memory, measure::SharedMemory::create(measure::shared_bytes(plan)));
  REMUDA_ASSIGN(Listener listener, listen_on_loopback(0));
  plan.memory_fd = memory.fd();
  PreparedBench bench{std::move(inventory), std::move(plan), std::move(memory), std::move(listener), {}};
  workers::Rendezvous rendezvous{.world_size = measure::rank_count(bench.plan),
                                 .port = bench.listener.port,
                                 .run_id = fmt::format("remuda-bench-{}", ::getpid()),
                                 .transport = "auto"};
  REMUDA_ASSIGN(rendezvous.secret, workers::make_secret());
  for (int rank = 0; rank < rendezvous.world_size; ++rank)
    bench.ranks.push_back(rank_spec(bench, program, rendezvous, rank));
  return bench;
}

Result<workers::Outcome> follow(PreparedBench& bench, BenchResults& results) {
  StatusLine status(StatusLine::mode_of_stderr(false), STDERR_FILENO, steady_clock());
  const auto ranks = bench.ranks;
  const workers::RankListener listener{
      .on_event =
          [&](int, const Json& event) {
            results.take(event);
            status.update(results.status(), results.done());
          },
      .on_line = [&](int rank,
                     const std::string& line) { status.print(fmt::format("[{}] {}", ranks[rank].device, line)); }};
  return supervise(std::move(bench.ranks), listener);
}

/// Stores first: a reader of stdout may be gone.
Result<int> publish(Inventory& inventory, const BenchResults& results, bool json) {
  inventory.measured_devices = results.devices();
  inventory.measured_links = results.links();
  REMUDA_ASSIGN(const std::string file, measure::store_measured(inventory));
  if (json) {
    fmt::print("{}", to_pretty(bench_json(inventory, results, file)));
  } else {
    fmt::print("{}", bench_text(inventory, results));
    fmt::print("Kept in {}\n", file);
  }
  for (const auto& [why, names] : results.unmeasured()) fmt::print(stderr, "{} not measured: {}\n", names, why);
  return results.unmeasured().empty() ? 0 : 1;
}

}  // namespace

Result<std::vector<const Device*>> devices_to_measure(const Inventory& inventory,
                                                      const std::vector<std::string>& names) {
  std::vector<const Device*> chosen;
  for (const std::string& name : names) {
    REMUDA_ASSIGN(const Device* const device, inventory.resolve(name));
    if (std::ranges::find(chosen, device) != chosen.end())
      return usage_error(fmt::format("device {} is named twice; each is measured once", name));
    chosen.push_back(device);
  }
  std::ranges::sort(chosen);
  for (const Device& device : inventory.devices)
    if (names.empty() && !device.partitioned.value_or(false)) chosen.push_back(&device);
  if (chosen.empty()) return failed("this machine has no device that could be measured");
  return chosen;
}

Result<int> bench_links(const BenchLinksFlags& flags) {
  REMUDA_ASSIGN(PreparedBench bench, prepare(flags));
  BenchResults results(bench.plan, wall_s());
  REMUDA_ASSIGN(const workers::Outcome outcome, follow(bench, results));
  if (outcome.failure) {
    const workers::Failure& failure = *outcome.failure;
    return tl::unexpected(Error{failure.kind, fmt::format("measuring {}: {}", failure.device, failure.cause)});
  }
  if (!outcome.stopped()) return publish(bench.inventory, results, flags.json);
  fmt::print(stderr, "stopped by signal {} ({}); nothing was kept\n", outcome.signal, ::strsignal(outcome.signal));
  return process::exit_code({.signal = outcome.signal});
}

}  // namespace remuda::cli
