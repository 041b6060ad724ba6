#include "recorded/import.h"

#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>

#include "base/file.h"
#include "base/read_all.h"
#include "cli/see/record.h"
#include "cli/subcommands.h"

namespace remuda::cli {
namespace {

constexpr const char* kImportExamples =
    "Reads what nvidia-smi topo -m, nvidia-smi topo -p2p, nvidia-smi -q -x and rocm-smi --showtopo print, NCCL and "
    "RCCL\n"
    "topology files (NCCL_TOPO_DUMP_FILE), and inventories. What a file lacks or contradicts is reported, never "
    "guessed.\n"
    "Examples:\n"
    "  remuda import topo.txt -o machine.json           a file that --machine takes\n"
    "  nvidia-smi topo -m | remuda import -             straight from the program\n"
    "Serial numbers and command lines are left out unless asked for.\n";

struct ImportFlags {
  std::string file, output;
  Privacy privacy;
};

/// Also accepts a pipe, such as the shell's <(program).
Result<Inventory> read(const std::string& file) {
  if (file == "-") {
    REMUDA_ASSIGN(const std::string text,
                  read_all(STDIN_FILENO, "standard input", recorded::kLargestRecording, kForever_s));
    return recorded::import_machine(text, "stdin");
  }
  REMUDA_ASSIGN(const std::string text, read_text(file, recorded::kLargestRecording));
  return recorded::import_machine(text, file);
}

Result<int> import(const ImportFlags& flags) {
  std::optional<PendingFile> output;
  if (!flags.output.empty()) {
    REMUDA_ASSIGN(PendingFile pending, PendingFile::create(flags.output));
    output.emplace(std::move(pending));
  }
  REMUDA_ASSIGN(Inventory inventory, read(flags.file));
  redact(inventory, flags.privacy);
  const std::string json = to_pretty(to_json(inventory));
  if (output)
    REMUDA_TRY(output->commit(json));
  else
    REMUDA_TRY(write_all(STDOUT_FILENO, json, "standard output"));
  for (const std::string& note : inventory.notes) fmt::print(stderr, "remuda: note: {}\n", note);
  return 0;
}

}  // namespace

void add_import(Program& program) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App& command = program.add("import", "Convert another program's description of a machine to an inventory",
                                  [flags] { return import(*flags); });
  command.add_option("FILE", flags->file, "What to read; - is standard input")->required();
  command.add_option("-o,--output", flags->output, "Where to write the inventory; standard output unless given")
      ->type_name("FILE");
  command.add_flag("--with-serials", flags->privacy.serials, "Keep serial numbers");
  command.add_flag("--with-names", flags->privacy.names, "Keep user names and command lines");
  command.footer(kImportExamples);
}

}  // namespace remuda::cli
