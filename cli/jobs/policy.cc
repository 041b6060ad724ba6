#include "policy/policy.h"

#include <fmt/format.h>
#include <memory>

#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "policy/file.h"
#include "process/user_name.h"
#include "run/policy_file.h"

namespace remuda::cli {
namespace {

struct PolicyFlags {
  MachineFlags machine;
  std::string word, file;
};

/// The file that was named, or that of the pool; empty where it has none.
Result<std::string> path_of(const PolicyFlags& flags) {
  if (!flags.file.empty()) return flags.file;
  REMUDA_ASSIGN(const PoolPlace place, place_of_pool(flags.machine));
  return place.policy;
}

/// Devices that it names and the machine does not have: they may be switched off.
std::string missing_devices(const policy::Policy& policy, const Inventory& inventory) {
  std::string text;
  for (const policy::Reservation& reservation : policy.reservations)
    for (const std::string& device : reservation.devices)
      if (const auto known = inventory.resolve(device); !known)
        text += fmt::format("{}: {}; it is reserved once it is there\n", reservation.where, known.error().message);
  if (policy.mig)
    for (const std::string& device : policy.mig->value)
      if (const auto known = inventory.resolve(device); !known)
        text += fmt::format("{}: {}; it is cut into partitions once it is there\n", policy.mig->where,
                            known.error().message);
  return text;
}

/// Most often typing errors, and then a rule that was to let somebody lets nobody.
std::string unknown_names(const policy::Policy& policy) {
  std::string text;
  const auto look_at = [&](const policy::Who& who) {
    const auto add = [&](const char* kind, const std::string& name) {
      text += fmt::format("{}: this machine has no {} '{}'; nobody has the rule by that name\n", who.where, kind, name);
    };
    for (const std::string& user : who.users)
      if (!process::is_user(user)) add("user", user);
    for (const std::string& group : who.groups)
      if (!process::is_group(group)) add("group", group);
  };
  for (const policy::Limit& limit : policy.limits) look_at(limit.who);
  for (const policy::Reservation& reservation : policy.reservations) look_at(reservation.who);
  look_at(policy.idle.exempt);
  return text;
}

Result<int> policy_command(const PolicyFlags& flags) {
  REMUDA_ASSIGN(const std::string path, path_of(flags));
  if (path.empty()) {
    fmt::print(
        "This pool has no policy: everybody may have everything; under an agent, only root gives priorities above 0\n");
    return 0;
  }
  REMUDA_ASSIGN(const policy::Policy policy, policy::read_policy(path));
  REMUDA_ASSIGN(const Inventory inventory, read_machine(flags.machine));
  const std::string missing = missing_devices(policy, inventory) + unknown_names(policy);
  if (flags.word == "show")
    print_fitted(policy_text(policy) + missing);
  else
    fmt::print("{} can be used; it has limits: {}, reservations: {}\n{}", path, policy.limits.size(),
               policy.reservations.size(), missing);
  return 0;
}

}  // namespace

void add_policy(Program& program) {
  auto flags = std::make_shared<PolicyFlags>();
  CLI::App& command =
      program.add("policy", "Check or show what users may have", [flags] { return policy_command(*flags); });
  command.add_option("WHAT", flags->word, "check: is the file right? show: rule by rule, where each stands")
      ->required()
      ->check(CLI::IsMember({"check", "show"}));
  command.add_option("FILE", flags->file, "A file in place of the pool's");
  add_machine_options(command, flags->machine);
  command.footer(
      "The pool for all users has the policy in /etc/remuda/policy.toml, a pool of one's own (and of a recorded "
      "machine)\n"
      "the one that REMUDA_POLICY names. docs/administrators.md says what it may say. While the file is wrong, no job\n"
      "enters the queue and none starts; what runs goes on.\n\n"
      "Examples:\n"
      "  remuda policy check new.toml && sudo cp new.toml /etc/remuda/policy.toml\n"
      "  remuda policy show\n");
}

}  // namespace remuda::cli
