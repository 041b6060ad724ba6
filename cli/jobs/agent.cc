#include "agent/agent.h"

#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "base/env.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "pool/shared_pool.h"
#include "run/policy_file.h"
#include "wire/place.h"

namespace remuda::cli {
namespace {

constexpr const char* kAgentFooter =
    "It has the pool of this machine open for all its users, who need not trust each other: each sees who holds what,\n"
    "and ends and reads only what is theirs. As root it holds the processes of every job together, and keeps them "
    "from\n"
    "devices that were not granted. systemd starts it once it was installed (see docs/administrators.md); it runs in "
    "the\n"
    "foreground until SIGTERM. Jobs go on when it ends, and the next one finds them.\n\n"
    "Where it is installed and does not run, the commands of users end with exit status 5.\n\n"
    "Examples:\n"
    "  sudo remuda agent                                           for this machine\n"
    "  remuda agent --machine box.json --pool p --socket p/socket  to rehearse; then, in another shell:\n"
    "  REMUDA_AGENT=p/socket remuda run --machine box.json -- true\n";

struct AgentFlags {
  MachineFlags machine;
  std::string socket, pool = pool::kSharedPool;
};

/// As the same folder is always named: jobs and the policy go by its name.
std::string plain_name(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  return path.has_filename() ? path.string() : path.parent_path().string();
}

Result<int> serve(const AgentFlags& flags) {
  const std::string pool = plain_name(flags.pool);
  const std::string usual = env::get(env::agent).value_or(wire::kSocket);
  const auto say = [](const std::string& sentence) { fmt::print(stderr, "remuda agent: {}\n", sentence); };
  REMUDA_TRY(agent::run_agent({.socket = flags.socket.empty() ? usual : flags.socket,
                               .pool = pool,
                               .read = reader_of(flags.machine),
                               .read_policy = [pool] { return run::policy_of(pool); },
                               .live = flags.machine.file.empty(),
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
  add_machine_options(command, flags->machine);
  command.footer(kAgentFooter);
}

}  // namespace remuda::cli
