#include "doctor/doctor.h"

#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "base/env.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "confine/confinement.h"
#include "doctor/gather.h"
#include "doctor/question.h"
#include "doctor/software.h"
#include "pool/pool.h"
#include "pool/shared_pool.h"
#include "wire/client.h"
#include "wire/place.h"

namespace remuda::cli {
namespace {

/// All questions that may hang run concurrently, with this limit; the rest of the 3 seconds is enough for the others.
constexpr double kLimit_s = 2.7;

constexpr const char* kDoctorExamples =
    "Each check is PASS, WARN (it works, at a cost), FAIL (something does not work) or SKIP (not known, or without "
    "meaning\n"
    "here); below WARN and FAIL stands what mends it. All is over within 3 seconds, whatever hangs: what did not "
    "answer\n"
    "in time is SKIP; when the devices do not answer, that is a FAIL too. PyTorch's files are read; it is never "
    "started.\n"
    "Exit status: 0 when nothing FAILs, 1 when something does.\n"
    "Examples:\n"
    "  remuda doctor\n"
    "  remuda doctor --machine node7.json    what is known of a recorded machine\n"
    "  remuda doctor --json | jq '.checks[] | select(.verdict == \"FAIL\")'";

struct DoctorFlags {
  MachineFlags machine;
  bool json = false;
};

/// An inventory as text; or after this mark, the sentence that says what is wrong with the request.
constexpr char kErrorMark = '!';

std::string read_machine_as_text(const MachineFlags& flags) {
  const auto inventory = read_machine(flags);
  return inventory ? to_line(to_json(*inventory)) : kErrorMark + inventory.error().message;
}

Result<Inventory> inventory_of(Result<doctor::Question>& question) {
  if (!question) return tl::unexpected(question.error());
  REMUDA_ASSIGN(const std::string text, question->answer());
  if (text.starts_with(kErrorMark)) return usage_error(text.substr(1));
  return parse_inventory(text, "this machine");
}

std::string find_software_as_text() {
  const auto folders = doctor::python_folders(doctor::python_program());
  return to_text(folders ? doctor::find_software(*folders, doctor::system_library_folders())
                         : doctor::no_software(folders.error().message));
}

doctor::Software software_of(Result<doctor::Question>& question) {
  auto software =
      question.and_then([](doctor::Question& asked) { return asked.answer(); }).and_then([](const std::string& text) {
        return doctor::parse_software(text);
      });
  return software ? std::move(*software) : doctor::no_software(software.error().message);
}

doctor::JobConfinement confinement_of_jobs() {
  const confine::Confined how = confine::try_confinement();
  return {how.cgroup, how.devices, how.obstacle};
}

Reading<doctor::PoolUse> pool_without_agent() {
  const auto folder = pool::pool_folder("");
  if (!folder) return Missing{MissingReason::unsupported, folder.error().message};
  const auto obstacle = pool::shared_pool_obstacle().value_or(pool::PoolObstacle{});
  return doctor::PoolUse{*folder, obstacle.sentence, obstacle.remedy, *folder == pool::kSharedPool};
}

/// What is known of jobs by where they are kept: by an agent, or by each user.
void ask_about_jobs(doctor::HostFacts& facts) {
  const auto socket = wire::agent_socket(true);
  if (!socket) {
    facts.confinement = confinement_of_jobs();
    facts.pool = pool_without_agent();
    return;
  }
  const auto client = wire::Client::connect(*socket, "");
  if (client) {
    facts.confinement = (*client)->is_of_root() ? doctor::JobConfinement{.by_agent = true} : confinement_of_jobs();
    facts.pool = doctor::PoolUse{(*client)->folder(), "", "", true};
  } else {
    facts.confinement = Missing{MissingReason::unsupported, "the agent, which confines jobs, does not answer"};
    facts.pool =
        doctor::PoolUse{pool::kSharedPool, client.error().message, "sudo systemctl start remuda-agent.socket", true};
  }
}

Result<std::vector<doctor::Diagnosis>> examine_live(const MachineFlags& flags) {
  using doctor::Question;
  auto machine = doctor::Question::ask(
      "the search for devices", [&] { return read_machine_as_text(flags); }, kLimit_s, steady_clock());
  auto software = doctor::Question::ask("python3", find_software_as_text, kLimit_s, steady_clock());
  const Result<Inventory> inventory = inventory_of(machine);
  if (!inventory && inventory.error().kind == ErrorKind::usage) return tl::unexpected(inventory.error());
  doctor::HostFacts facts = doctor::gather_facts(inventory.value_or(Inventory{}));
  facts.software = software_of(software);
  ask_about_jobs(facts);
  return examine(inventory, facts);
}

bool stdout_has_colour() {
  return ::isatty(STDOUT_FILENO) && env::get(env::no_color).value_or("").empty() &&
         env::get(env::term).value_or("dumb") != "dumb";
}

Result<std::vector<doctor::Diagnosis>> examine_file(const MachineFlags& flags) {
  REMUDA_ASSIGN(const Inventory inventory, read_machine(flags));
  return doctor::examine(inventory, {});
}

Result<int> diagnose(const DoctorFlags& flags) {
  REMUDA_ASSIGN(const auto diagnoses,
                flags.machine.file.empty() ? examine_live(flags.machine) : examine_file(flags.machine));
  if (flags.json)
    fmt::print("{}", to_pretty(report_json(diagnoses)));
  else
    print_fitted(report_text(diagnoses, stdout_has_colour()));
  return tally(diagnoses).failed > 0 ? 1 : 0;
}

}  // namespace

void add_doctor(Program& program) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App& command = program.add("doctor", "Say what is wrong with this machine, and what mends it",
                                  [flags] { return diagnose(*flags); });
  command.add_flag("--json", flags->json, "Print the checks as JSON");
  add_machine_options(command, flags->machine);
  command.footer(kDoctorExamples);
}

}  // namespace remuda::cli
