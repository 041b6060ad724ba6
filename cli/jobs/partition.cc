// What an agent has done by a process of its own: a partition of a GPU is made or taken away, and marked.
#include <fmt/format.h>
#include <memory>

#include "agent/partition_marks.h"
#include "cli/subcommands.h"
#include "probe/live_machine.h"

namespace remuda::cli {
namespace {

struct PartitionFlags {
  std::string word, device, profile, marks;
};

Result<int> change(const PartitionFlags& flags) {
  if (flags.word == "remove") {
    REMUDA_TRY(probe::remove_partition(flags.device));
    agent::unmark_partition(flags.marks, flags.device);
    return 0;
  }
  REMUDA_ASSIGN(const std::string uuid, probe::make_partition(flags.device, flags.profile));
  if (auto marked = agent::mark_partition(flags.marks, uuid); !marked) {
    (void)probe::remove_partition(uuid);
    return tl::unexpected(std::move(marked.error()));
  }
  fmt::print("{}\n", uuid);
  return 0;
}

}  // namespace

void add_partition(Program& program) {
  auto flags = std::make_shared<PartitionFlags>();
  CLI::App& command = program.add("partition", "For the agent: make a partition of a GPU, or take one away",
                                  [flags] { return change(*flags); });
  command.group("");  // not for people
  command.add_option("WHAT", flags->word, "make or remove")->required()->check(CLI::IsMember({"make", "remove"}));
  command.add_option("DEVICE", flags->device, "UUID of the GPU, or of the partition")->required();
  command.add_option("PROFILE", flags->profile, "Size of the new one, as 1g.5gb");
  command.add_option("--marks", flags->marks, "Folder in which it is marked as the agent's")->required();
}

}  // namespace remuda::cli
