// What an agent has done by a process of its own: a partition of a GPU is made or taken away, and marked.
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <poll.h>
#include <unistd.h>

#include "agent/partition_intent.h"
#include "agent/partition_marks.h"
#include "cli/subcommands.h"
#include "device/words.h"
#include "probe/live_machine.h"

namespace remuda::cli {
namespace {

using What = agent::PartitionChange::What;

struct PartitionFlags {
  std::string what, gpu, which, marks;
};

/// Brings to an end what a process that failed, or was killed, has begun: what is no device goes, as nobody else sees
/// it, and the marks are as what is there. A new device is taken for the agent's unless `has_failed`: then it is what
/// an administrator has made meanwhile.
Result<void> settle(const std::string& marks, const std::string& gpu, bool has_failed = false) {
  const auto intent = agent::read_intent(marks, gpu);
  if (!intent) return {};
  const agent::PartitionChange& change = intent->change;
  REMUDA_ASSIGN(const auto instances, probe::partition_instances(change.gpu));
  std::vector<std::string> there;
  for (const auto& [number, uuid] : instances) {
    if (!intent->concerns(number)) continue;
    if (uuid.empty())
      REMUDA_TRY(probe::remove_empty_instance(change.gpu, number));
    else
      there.push_back(uuid);
  }
  if (change.what == What::make && there.size() > 1)
    fmt::print("{} has {} new partitions, of which nobody knows whose they are; none is taken for the agent's\n",
               change.gpu, there.size());
  if (change.what == What::make && there.size() == 1 && !has_failed)
    REMUDA_TRY(agent::mark_partition(marks, there.front()));
  if (change.what == What::remove && std::ranges::find(there, change.partition) == there.end())
    agent::unmark_partition(marks, change.partition);
  agent::forget_intent(marks, gpu);
  return {};
}

/// An agent reads what is printed here, as long as it lives. One that follows it has seen the intent, or this does not
/// go on.
bool is_heard() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) <= 0 || (output.revents & POLLERR) == 0;
}

Result<agent::PartitionIntent> intend(const agent::PartitionChange& change, const std::string& marks) {
  agent::PartitionIntent intent{change, {}, {}};
  REMUDA_ASSIGN(const auto instances, probe::partition_instances(change.gpu));
  for (const auto& [number, uuid] : instances) {
    if (change.what == What::make) intent.before.insert(number);
    if (change.what == What::remove && uuid == change.partition) intent.instance = number;
  }
  REMUDA_TRY(agent::write_intent(marks, intent));
  if (is_heard()) return intent;
  agent::forget_intent(marks, change.gpu);
  return failed("who has asked for this is gone");
}

Result<void> make(const agent::PartitionChange& change, const std::string& marks) {
  REMUDA_ASSIGN(const std::string uuid, probe::make_partition(change.gpu, change.profile));
  if (auto marked = agent::mark_partition(marks, uuid); !marked) {
    (void)probe::remove_partition(uuid);
    return marked;
  }
  fmt::print("{}\n", uuid);
  return {};
}

Result<int> change_partitions(const PartitionFlags& flags) {
  const What what = from_word<What>(flags.what).value_or(What::settle);
  const agent::PartitionChange change{what, flags.gpu, what == What::make ? flags.which : "",
                                      what == What::remove ? flags.which : ""};
  REMUDA_ASSIGN(const Fd lock, agent::lock_partitions(flags.marks, flags.gpu));
  REMUDA_TRY(settle(flags.marks, flags.gpu));
  if (what == What::settle) return 0;
  REMUDA_TRY(intend(change, flags.marks));
  const auto done = what == What::make ? make(change, flags.marks) : probe::remove_partition(change.partition);
  if (what == What::make && done) return agent::forget_intent(flags.marks, flags.gpu), 0;
  const auto settled = settle(flags.marks, flags.gpu, !done);
  if (!done && !settled) return failed(done.error().message + "; " + settled.error().message);
  REMUDA_TRY(done);
  REMUDA_TRY(settled);
  return 0;
}

}  // namespace

void add_partition(Program& program) {
  auto flags = std::make_shared<PartitionFlags>();
  CLI::App& command = program.add("partition", "For the agent: make a partition of a GPU, or take one away",
                                  [flags] { return change_partitions(*flags); });
  command.group("");  // not for people
  command.add_option("WHAT", flags->what, "make, remove, or settle what was cut off")
      ->required()
      ->check(CLI::IsMember({"make", "remove", "settle"}));
  command.add_option("GPU", flags->gpu, "UUID of the GPU")->required();
  command.add_option("WHICH", flags->which, "Size of the new one, as 1g.5gb, or UUID of the one that goes");
  command.add_option("--marks", flags->marks, "Folder in which it is marked as the agent's")->required();
}

}  // namespace remuda::cli
