#include "place/place.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <memory>

#include "cli/jobs/pool_machine.h"
#include "cli/jobs/request_flags.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "place/where_attributes.h"
#include "pool/claim.h"
#include "pool/pool.h"
#include "share/job_sharing.h"
#include "wire/place.h"

namespace remuda::cli {
namespace {

constexpr const char* kPlaceExamples =
    "Free is what no job's lease and no process holds now; nothing is reserved. Of the sets that meet the request, "
    "the\n"
    "one with the fastest ring is chosen; of equal ones, the one of like devices, then the one on fewer NUMA nodes, "
    "then\n"
    "the one that leaves more linked pairs whole. Exit status 3: this machine never can; 4: not now.\n\n"
    "Examples:\n"
    "  remuda place -n 2                                   the best two GPUs that are free\n"
    "  remuda place -n 4 --mem 24GiB --cap bf16 --explain  and why these\n"
    "  remuda place -n 2 --link nvlink --json              for programs\n"
    "  remuda place --where 'memory >= 40Gi && numaNode == 0'\n"
    "  remuda place -n 2 --machine saved.json --busy 0,1   on a recorded machine, with two GPUs held\n"
    "A condition compares with == != < <= > >= =~ and in, and joins with && || ! and parentheses. It may ask for:\n";

/// The footer, with the attributes that a condition may ask for.
std::string footer() {
  std::string text = kPlaceExamples;
  for (const place::Attribute& attribute : place::attributes())
    text += fmt::format("  {:<23}{}\n", attribute.name, attribute.meaning);
  return text;
}

struct PlaceFlags {
  MachineFlags machine;
  RequestFlags request;
  std::vector<std::string> busy;
  bool explain = false, json = false;
};

struct Current {
  Inventory inventory;
  std::vector<place::Held> held;
  bool may_have_daemons = true;
};

Result<Current> read_pool(const MachineFlags& machine) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(machine));
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read_around(0));
  return Current{caretaker.inventory(), held_now(caretaker, state), caretaker.pool().may_have_daemons()};
}

/// The machine, and the parts of it that leases and processes hold. A pool that does not exist yet has no leases, and
/// is not made for this.
Result<Current> read_current(const MachineFlags& machine) {
  if (wire::agent_socket(machine.file.empty())) return read_pool(machine);
  const auto folder = pool::pool_folder(machine.file);
  std::error_code error;
  if (!folder || (!std::filesystem::exists(*folder, error) && !error)) {
    REMUDA_ASSIGN(Inventory inventory, read_machine(machine));
    std::vector<place::Held> held = place::held_by_processes(inventory);
    if (machine.file.empty())
      std::ranges::move(pool::claimed_by_others(folder.value_or(""), inventory), std::back_inserter(held));
    return Current{std::move(inventory), std::move(held)};
  }
  return read_pool(machine);
}

Result<void> add_busy(const std::vector<std::string>& names, Current& current) {
  for (const std::string& name : names) {
    REMUDA_ASSIGN(const Device* device, current.inventory.resolve(name));
    current.held.push_back({.device = device->id, .holder = "--busy"});
  }
  return {};
}

void add_sharing_note(const Current& current, const place::Request& request, const MachineFlags& machine,
                      place::Placement& placement) {
  std::string text = share::expected_sharing(
      current.inventory, placement.devices,
      {.share = request.share, .live = machine.file.empty(), .may_have_daemons = current.may_have_daemons});
  if (!text.empty()) placement.explanation.notes.push_back(std::move(text));
}

Result<int> print(const PlaceFlags& flags, const place::Placement& placement) {
  if (flags.json)
    fmt::print("{}", to_pretty(to_json(placement)));
  else if (flags.explain)
    print_fitted(explanation_text(placement));
  else
    fmt::print("{}\n", fmt::join(placement.explanation.devices, " "));
  return 0;
}

Result<int> print(const PlaceFlags& flags, const place::Refusal& refusal) {
  const ErrorKind kind = refusal.never ? ErrorKind::never : ErrorKind::not_now;
  if (flags.json) {
    fmt::print("{}", to_pretty(to_json(refusal)));
    return exit_status(kind);
  }
  if (flags.explain) print_fitted(refusal_text(refusal));
  return tl::unexpected(Error{kind, refusal.sentence, -1});
}

Result<int> place(const PlaceFlags& flags) {
  REMUDA_ASSIGN(const place::Request request, make_request(flags.request));
  REMUDA_ASSIGN(Current current, read_current(flags.machine));
  REMUDA_TRY(add_busy(flags.busy, current));
  REMUDA_ASSIGN(place::Answer answer, place(place::Layout(current.inventory), request, current.held));
  if (auto* placement = std::get_if<place::Placement>(&answer))
    add_sharing_note(current, request, flags.machine, *placement);
  return std::visit([&](const auto& outcome) { return print(flags, outcome); }, answer);
}

}  // namespace

void add_place(Program& program) {
  auto flags = std::make_shared<PlaceFlags>();
  CLI::App& command =
      program.add("place", "Show which devices a job would get, and why", [flags] { return place(*flags); });
  add_request_options(command, flags->request);
  add_machine_options(command, flags->machine);
  command.add_option("--busy", flags->busy, "Count these as held too")
      ->type_name("DEVICE")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--json", flags->json, "Print the answer with its explanation as JSON");
  command.add_flag("--explain", flags->explain, "Say why these, and what was rejected");
  command.footer(footer());
}

}  // namespace remuda::cli
