// remuda checkpoint: what a run has kept of itself.
#include <filesystem>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <memory>

#include "base/file.h"
#include "base/json.h"
#include "base/table.h"
#include "base/text.h"
#include "checkpoint/export.h"
#include "cli/subcommands.h"

namespace remuda::cli {
namespace {

using checkpoint::Found;
using checkpoint::Manifest;
using checkpoint::Stored;

constexpr const char* kCheckpointExamples =
    "Examples:\n"
    "  remuda checkpoint list runs/a                     what there is, the oldest first\n"
    "  remuda checkpoint verify runs/a                   read all of it, and compare the sums\n"
    "  remuda checkpoint export runs/a model.safetensors the model of the newest that is whole\n"
    "A folder is the checkpoint.folder of a job. `remuda train job.toml --resume` goes on from it.\n"
    "Exit status: 0 done, 1 verify found a damaged one, 2 wrong input.\n";

constexpr const char *kList = "list", *kVerify = "verify", *kExport = "export";

struct Flags {
  std::string action, folder, file;
  int64_t step = -1;
  bool json = false, average = false;
};

Result<std::vector<Stored>> stored_there(const std::string& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return usage_error(fmt::format("there is no folder {}", folder));
  return checkpoint::stored_in(folder);
}

/// What is known of one; `wrong` is empty where it is whole, as far as it was looked at.
struct Seen {
  Stored at;
  Manifest manifest;
  std::string wrong;
};

Result<std::vector<Seen>> look(const std::string& folder, bool at_all_bytes) {
  REMUDA_ASSIGN(const std::vector<Stored> all, stored_there(folder));
  std::vector<Seen> seen;
  for (const Stored& one : all) {
    auto manifest = at_all_bytes ? checkpoint::verify(one) : checkpoint::read_manifest(one);
    if (manifest)
      seen.push_back({one, std::move(*manifest), ""});
    else
      seen.push_back({one, {}, manifest.error().message});
  }
  return seen;
}

std::string time_text(double seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<time_t>(seconds)));
}

Json to_json(const Seen& seen) {
  Json json{{"step", seen.at.step}, {"folder", seen.at.folder}};
  if (seen.wrong.empty())
    json.update({{"ranks", seen.manifest.files.size()},
                 {"bytes", seen.manifest.bytes()},
                 {"written_s", seen.manifest.written_s},
                 {"remuda", seen.manifest.remuda}});
  else
    json["wrong"] = seen.wrong;
  return json;
}

Result<int> show(const Flags& flags, bool at_all_bytes) {
  REMUDA_ASSIGN(const std::vector<Seen> all, look(flags.folder, at_all_bytes));
  int status = 0;
  Json list = Json::array();
  Table table({"STEP", "WRITTEN", "RANKS", "SIZE", "STATE"});
  for (const Seen& one : all) {
    list.push_back(to_json(one));
    const bool good = one.wrong.empty();
    if (!good) status = 1;
    table.add({fmt::format("{}", one.at.step), good ? time_text(one.manifest.written_s) : "-",
               good ? fmt::format("{}", one.manifest.files.size()) : "-",
               good ? human_bytes(double(one.manifest.bytes())) : "-",
               !good          ? printable(one.wrong)
               : at_all_bytes ? "whole"
                              : "not read"});
  }
  if (flags.json)
    fmt::print("{}", to_pretty({{"checkpoints", list}}));
  else
    fmt::print("{}", all.empty() ? fmt::format("there is no checkpoint in {}\n", flags.folder) : table.text());
  return at_all_bytes ? status : 0;
}

Result<Found> chosen(const Flags& flags) {
  REMUDA_ASSIGN(const std::vector<Stored> all, stored_there(flags.folder));
  if (flags.step >= 0) {
    const Stored at = checkpoint::place_of(flags.folder, flags.step);
    REMUDA_ASSIGN(Manifest manifest, checkpoint::verify(at));
    return Found{at, std::move(manifest)};
  }
  REMUDA_ASSIGN(checkpoint::Newest newest, checkpoint::newest_whole(flags.folder));
  for (const std::string& why : newest.passed_over)
    fmt::print(stderr, "{}; the one before it is taken\n", printable(why));
  if (!newest.found) return usage_error(fmt::format("there is no whole checkpoint in {}", flags.folder));
  return std::move(*newest.found);
}

Result<int> write_model(const Flags& flags) {
  REMUDA_ASSIGN(const Found found, chosen(flags));
  REMUDA_ASSIGN(const uint64_t bytes, checkpoint::write_model(found, flags.average, flags.file));
  fmt::print("{}: the model after step {}, {}\n", flags.file, found.at.step, human_bytes(double(bytes)));
  return 0;
}

Result<int> run(const Flags& flags) {
  return flags.action == kExport ? write_model(flags) : show(flags, flags.action == kVerify);
}

}  // namespace

void add_checkpoint(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = program.add("checkpoint", "What a training run has kept of itself: list, verify, export",
                                  [flags] { return run(*flags); });
  command.add_option("ACTION", flags->action, "list, verify (read every byte) or export (write the model)")
      ->required()
      ->check(CLI::IsMember({kList, kVerify, kExport}));
  command.add_option("FOLDER", flags->folder, "The job's checkpoint.folder")->required();
  command.add_option("FILE", flags->file, "export: the safetensors file to write");
  command
      .add_option("--step", flags->step, "export: the checkpoint of this step; the newest that is whole unless given")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--average", flags->average, "export: the running average of the weights (train.average)");
  command.add_flag("--json", flags->json, "list and verify: print JSON");
  command.parse_complete_callback([flags] {
    if ((flags->action == kExport) != !flags->file.empty())
      throw CLI::ValidationError(flags->file.empty() ? "export needs the FILE to write" : "FILE is for export only");
  });
  command.footer(kCheckpointExamples);
}

}  // namespace remuda::cli
