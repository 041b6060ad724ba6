// make_man_pages FOLDER COMPLETION: writes remuda.1 and a page for each subcommand to FOLDER, and a script for each
// shell to COMPLETION. Run by the build.
#include <filesystem>
#include <fmt/format.h>

#include "base/file.h"
#include "cli/completion_script.h"
#include "cli/man_page.h"
#include "cli/subcommands.h"

namespace {

remuda::Result<void> write(const std::string& path, const std::string& text) {
  REMUDA_ASSIGN(remuda::PendingFile file, remuda::PendingFile::create(path));
  return file.commit(text);
}

remuda::Result<void> write_page(const CLI::App& command, const std::string& folder) {
  return write(fmt::format("{}/{}.1", folder, remuda::cli::man_name(command)), remuda::cli::man_page(command));
}

remuda::Result<void> write_all(const std::string& pages, const std::string& scripts) {
  remuda::cli::Program program;
  remuda::cli::add_subcommands(program);
  REMUDA_TRY(write_page(program.app, pages));
  for (const CLI::App* command : program.app.get_subcommands(remuda::cli::is_for_people))
    REMUDA_TRY(write_page(*command, pages));
  for (const std::string& shell : remuda::cli::completion_shells())
    REMUDA_TRY(write(fmt::format("{}/{}", scripts, shell), remuda::cli::completion_script(program.app, shell)));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fmt::print(stderr, "make_man_pages FOLDER COMPLETION\n"), 2;
  std::error_code ignored;
  for (const int i : {1, 2}) std::filesystem::create_directories(argv[i], ignored);
  const auto written = write_all(argv[1], argv[2]);
  if (written) return 0;
  fmt::print(stderr, "make_man_pages: {}\n", written.error().message);
  return exit_status(written.error().kind);
}
