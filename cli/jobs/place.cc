#include "place/place.h"

#include <fmt/format.h>
#include <memory>

#include "cli/jobs/request_flags.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "place/where_attributes.h"
#include "share/job_sharing.h"

namespace remuda::cli {
namespace {

constexpr const char* kPlaceExamples =
    "Among the sets that will do, the one with the fastest ring is chosen, then like before unlike devices, then one\n"
    "NUMA node before two, then what keeps linked pairs whole for others. Exit status 3: this machine never can; 4: "
    "not\n"
    "now.\n\n"
    "Examples:\n"
    "  remuda place -n 2                                   the best two GPUs that are free\n"
    "  remuda place -n 4 --mem 24GiB --cap bf16 --explain  and why these\n"
    "  remuda place -n 2 --link nvlink --json              for programs\n"
    "  remuda place --where 'memory >= 40Gi && numaNode == 0'\n"
    "  remuda place -n 2 --machine saved.json --busy 0,1   on a recorded machine, with two GPUs taken\n"
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

Result<std::vector<place::Held>> held(const PlaceFlags& flags, const Inventory& inventory) {
  std::vector<place::Held> held = place::held_by_processes(inventory);
  for (const std::string& name : flags.busy) {
    REMUDA_ASSIGN(const Device* device, inventory.resolve(name));
    held.push_back({.device = device->id, .holder = "--busy"});
  }
  return held;
}

void add_sharing_note(const Inventory& inventory, const place::Request& request, const MachineFlags& machine,
                      place::Placement& placement) {
  std::string text = share::expected_sharing(inventory, placement.devices, request.share, false, machine.file.empty());
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
  REMUDA_ASSIGN(const Inventory inventory, read_machine(flags.machine));
  REMUDA_ASSIGN(const std::vector<place::Held> taken, held(flags, inventory));
  REMUDA_ASSIGN(place::Answer answer, place(place::Layout(inventory), request, taken));
  if (auto* placement = std::get_if<place::Placement>(&answer))
    add_sharing_note(inventory, request, flags.machine, *placement);
  return std::visit([&](const auto& outcome) { return print(flags, outcome); }, answer);
}

}  // namespace

void add_place(Program& program) {
  auto flags = std::make_shared<PlaceFlags>();
  CLI::App& command =
      program.add("place", "Show which devices a job would get, and why", [flags] { return place(*flags); });
  add_request_options(command, flags->request);
  add_machine_options(command, flags->machine);
  command.add_option("--busy", flags->busy, "Count these as taken too")
      ->type_name("DEVICE")
      ->type_name("DEVICES")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--json", flags->json, "Print the answer as JSON, which explains itself");
  command.add_flag("--explain", flags->explain, "Say why these, and what was rejected");
  command.footer(footer());
}

}  // namespace remuda::cli
