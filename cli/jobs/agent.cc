#include "agent/agent.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <memory>

#include "base/duration.h"
#include "base/env.h"
#include "base/host_port.h"
#include "base/text.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "cluster/kubelet.h"
#include "cluster/slurm.h"
#include "pool/shared_pool.h"
#include "run/policy_file.h"
#include "spot/poller.h"
#include "wire/place.h"

namespace remuda::cli {
namespace {

constexpr const char* kAgentFooter =
    "It has the pool of this machine open for all its users, who need not trust each other: each sees who holds what,\n"
    "and ends and reads only what is theirs. As root it holds the processes of every job together, and keeps them "
    "from\n"
    "devices that were not granted. systemd starts it once it was installed (see docs/administrators.md); it runs in "
    "the\n"
    "foreground until SIGTERM. Jobs go on when it ends, and the next one finds them; those that wait in the "
    "background\n"
    "(run -d) wait without a process, and it starts them as their users when their turn has come.\n\n"
    "With --spot it asks the cloud every five seconds. When that says that it takes the machine away, no device is\n"
    "granted any more, and jobs are told to end as for preemption: their signal, their grace time. Until it says "
    "so.\n\n"
    "[devices] enforce in /etc/remuda/policy.toml says whom it keeps from device files: off, jobs (unless given), "
    "audit\n"
    "(its log names whom everyone would refuse) or everyone: then all but root, exempt units and the jobs that hold a\n"
    "device are refused it, also while no agent runs (see docs/isolation.md).\n\n"
    "Where it is installed and does not run, the commands of users end with exit status 5.\n\n"
    "Examples:\n"
    "  sudo remuda agent                                           for this machine\n"
    "  sudo remuda agent --spot auto                               on a spot machine of AWS, Google Cloud or Azure\n"
    "  remuda agent --machine box.json --pool p --socket p/socket  to rehearse; then, in another shell:\n"
    "  REMUDA_AGENT=p/socket remuda run --machine box.json -- true\n";

constexpr double kLongestSpotEvery_s = 60;

struct AgentFlags {
  MachineFlags machine;
  std::string socket, pool = pool::kSharedPool;
  std::string spot, spot_every = "5s", spot_address = fmt::format("{}:{}", spot::kMetadataHost, spot::kMetadataPort);
};

Result<spot::MakeWatch> watch_of(const AgentFlags& flags) {
  if (flags.spot.empty()) return nullptr;
  const auto server = parse_host_port(flags.spot_address);
  if (!server || server->host.empty())
    return usage_error(
        fmt::format("--spot-address: '{}' is no address; write 169.254.169.254:80", printable(flags.spot_address)));
  return [cloud = from_word<spot::Cloud>(flags.spot), server = *server](int stop) {
    return spot::Watch(cloud, spot::asking(server, stop));
  };
}

/// What other managers of this machine give out.
pool::ReadAllocations allocations_here() {
  return [slurm = std::make_shared<cluster::Slurm>(cluster::slurm_here())](const Inventory& inventory) {
    std::vector<pool::Allocation> allocations = slurm->allocations(inventory);
    std::ranges::move(cluster::kubelet_allocations(inventory), std::back_inserter(allocations));
    return allocations;
  };
}

/// As the same folder is always named: jobs and the policy go by its name.
std::string plain_name(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  return path.has_filename() ? path.string() : path.parent_path().string();
}

Result<int> serve(const AgentFlags& flags) {
  REMUDA_ASSIGN(const spot::MakeWatch spot, watch_of(flags));
  const auto every_s = parse_duration(flags.spot_every);
  if (!every_s || *every_s > kLongestSpotEvery_s)
    return usage_error(
        fmt::format("--spot-every: '{}' is no time up to a minute; write 5s", printable(flags.spot_every)));
  const std::string pool = plain_name(flags.pool);
  MachineFlags machine = flags.machine;
  machine.asks_agent = false;
  std::vector<std::string> words;
  if (!machine.file.empty()) words = {"--machine", std::filesystem::absolute(machine.file).string()};
  const std::string usual = env::get(env::agent).value_or(wire::kSocket);
  const auto say = [](const std::string& sentence) { fmt::print(stderr, "remuda agent: {}\n", sentence); };
  REMUDA_TRY(agent::run_agent({.socket = flags.socket.empty() ? usual : flags.socket,
                               .pool = pool,
                               .read = reader_of(machine),
                               .read_policy = [pool] { return run::policy_of(pool); },
                               .policy = run::policy_path(pool),
                               .live = flags.machine.file.empty(),
                               .read_allocations = allocations_here(),
                               .spot = spot,
                               .spot_every_s = *every_s,
                               .machine = words,
                               .say = say}));
  return 0;
}

}  // namespace

void add_agent(Program& program) {
  auto flags = std::make_shared<AgentFlags>();
  CLI::App& command =
      program.add("agent", "Serve the pool of this machine to all its users", [flags] { return serve(*flags); });
  command.add_option("--socket", flags->socket, "Where users reach it, in place of /run/remuda/agent.sock")
      ->type_name("PATH");
  command.add_option("--pool", flags->pool, "Where the pool is kept, in place of /var/lib/remuda")->type_name("FOLDER");
  command
      .add_option("--spot", flags->spot, "Ask this cloud whether it takes the machine away: aws, gcp, azure or auto")
      ->type_name("CLOUD")
      ->check(CLI::IsMember({"aws", "gcp", "azure", "auto"}));
  command.add_option("--spot-every", flags->spot_every, "How often, in place of every 5s")->type_name("TIME");
  command.add_option("--spot-address", flags->spot_address, "Where the cloud answers, in place of 169.254.169.254:80")
      ->type_name("HOST:PORT");
  add_machine_options(command, flags->machine);
  command.footer(kAgentFooter);
}

}  // namespace remuda::cli
