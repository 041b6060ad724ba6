// make_man_pages FOLDER: writes remuda.1 and a page for each subcommand there. Run by the build.
#include <filesystem>
#include <fmt/format.h>

#include "base/file.h"
#include "cli/man_page.h"
#include "cli/subcommands.h"

namespace {

remuda::Result<void> write_page(const CLI::App& command, const std::string& folder) {
  REMUDA_ASSIGN(remuda::PendingFile file,
                remuda::PendingFile::create(fmt::format("{}/{}.1", folder, remuda::cli::man_name(command))));
  return file.commit(remuda::cli::man_page(command));
}

remuda::Result<void> write_pages(const std::string& folder) {
  remuda::cli::Program program;
  remuda::cli::add_subcommands(program);
  REMUDA_TRY(write_page(program.app, folder));
  for (const CLI::App* command : program.app.get_subcommands({})) REMUDA_TRY(write_page(*command, folder));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fmt::print(stderr, "make_man_pages FOLDER\n"), 2;
  std::error_code ignored;
  std::filesystem::create_directories(argv[1], ignored);
  const auto written = write_pages(argv[1]);
  if (written) return 0;
  fmt::print(stderr, "make_man_pages: {}\n", written.error().message);
  return exit_status(written.error().kind);
}
