#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <memory>

#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/jobs/kept_line.h"
#include "cli/jobs/run_flags.h"
#include "cli/subcommands.h"
#include "doctor/question.h"
#include "doctor/software.h"

namespace remuda::cli {
namespace {

constexpr const char* kJupyterFooter =
    "Writes a kernel that Jupyter offers from then on, in the browser, in VS Code and in JupyterLab. Each notebook "
    "that\n"
    "uses it is a job: it starts when devices are free, sees those and no others, and gives them back when its kernel "
    "is\n"
    "shut down, or dies, and when Jupyter ends. Until it starts, `remuda queue` shows it; Jupyter itself waits for a\n"
    "minute. `jupyter kernelspec remove NAME` takes it away again.\n\n"
    "Examples:\n"
    "  remuda jupyter                              a kernel with one GPU\n"
    "  remuda jupyter -n 2 --name two-gpus         with the two that are best joined\n"
    "  remuda jupyter --share 25% --time-limit 8h  a quarter of a GPU, for a day of work\n"
    "  remuda jupyter --python ~/venv/bin/python   of another Python than the one of this shell\n";

struct JupyterFlags {
  RunFlags run;
  std::string name = "remuda", title, python;
};

/// As Jupyter takes them for names of folders.
bool is_kernel_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  });
}

/// Where Jupyter looks for the kernels of this user.
Result<std::string> kernels_folder() {
  if (const auto data = env::get(env::jupyter_data); data && data->starts_with('/')) return *data + "/kernels";
  if (const auto data = env::get(env::data_home); data && data->starts_with('/')) return *data + "/jupyter/kernels";
  if (const auto home = env::get(env::home); home && home->starts_with('/'))
    return *home + "/.local/share/jupyter/kernels";
  return usage_error(fmt::format("none of {}, {} and {} names a folder to write the kernel to", env::jupyter_data.name,
                                 env::data_home.name, env::home.name));
}

/// The path of that Python, or of the shell's own, if it can run a kernel.
Result<std::string> python_with_kernel(const std::string& chosen) {
  constexpr double kPatience_s = 60;  // a Python on a slow network disk
  const std::string python = chosen.empty() ? doctor::python_program() : chosen;
  const auto ask = [&] {
    return doctor::output_of({python, "-c", "import ipykernel, sys; print(sys.executable)"}).value_or("");
  };
  REMUDA_ASSIGN(doctor::Question question, doctor::Question::ask(printable(python), ask, kPatience_s, steady_clock()));
  REMUDA_ASSIGN(const std::string path, question.answer());
  if (path.starts_with('/')) return path.substr(0, path.find('\n'));
  return usage_error(fmt::format(
      "{} cannot run a kernel: install its package ipykernel, or name another one by --python", printable(python)));
}

/// The flags that describe the job, as they were given.
std::vector<std::string> job_arguments(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options())
    if (option->get_group() == kWhichDevices || option->get_group() == kHowItRuns)
      std::ranges::move(words_of(*option), std::back_inserter(words));
  return words;
}

Result<Json> kernel(const JupyterFlags& flags, const std::string& python) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return failed(fmt::format("cannot find remuda itself: /proc/self/exe: {}", error.message()));
  std::vector<std::string> line{self, "run", "--quiet", "--with-parent", "--name=jupyter"};
  std::ranges::move(job_arguments(*flags.run.app), std::back_inserter(line));
  const MachineFlags& machine = flags.run.machine;
  if (!machine.file.empty()) line.push_back("--machine=" + std::filesystem::absolute(machine.file).string());
  if (machine.cpu_devices > 0) line.push_back(fmt::format("--cpu-devices={}", machine.cpu_devices));
  for (const char* word : {"--", python.c_str(), "-m", "ipykernel_launcher", "-f", "{connection_file}"})
    line.emplace_back(word);
  // An interrupt is a message to the kernel: a signal would be one to the job, which it ends.
  return Json{{"argv", line},
              {"display_name", flags.title.empty() ? fmt::format("Python 3 ({})", flags.name) : flags.title},
              {"language", "python"},
              {"interrupt_mode", "message"},
              {"metadata", {{"debugger", true}, {"remuda", version()}}}};
}

/// A folder of that name holds a kernel that this command has not written.
Result<void> check_replaceable(const std::string& path, const std::string& name) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  REMUDA_ASSIGN(const std::string text, read_text(path));
  const auto there = parse_json(text, path);
  if (there && there->is_object() && there->value("metadata", Json::object()).contains("remuda")) return {};
  return usage_error(fmt::format("{} is a kernel of another program; give yours another --name than {}", path, name));
}

Result<int> jupyter(const JupyterFlags& flags) {
  if (!is_kernel_name(flags.name))
    return usage_error(fmt::format("--name: '{}' is no name of a kernel; write letters, digits, '.', '-' and '_'",
                                   printable(flags.name)));
  REMUDA_TRY(make_job_spec(flags.run));
  REMUDA_ASSIGN(const std::string python, python_with_kernel(flags.python));
  REMUDA_ASSIGN(const std::string kernels, kernels_folder());
  const std::string folder = kernels + "/" + flags.name, path = folder + "/kernel.json";
  REMUDA_TRY(check_replaceable(path, flags.name));
  REMUDA_ASSIGN(const Json written, kernel(flags, python));
  REMUDA_TRY(make_folder(folder));
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(path));
  REMUDA_TRY(file.commit(to_pretty(written)));
  fmt::print("{}\nJupyter offers it as \"{}\".\n", path, printable(written["display_name"].get<std::string>()));
  return 0;
}

}  // namespace

void add_jupyter(Program& program) {
  auto flags = std::make_shared<JupyterFlags>();
  CLI::App& command = program.add("jupyter", "Make a Jupyter kernel that holds devices while it runs",
                                  [flags] { return jupyter(*flags); });
  flags->run.app = &command;
  command.add_option("--name", flags->name, "What to call the kernel; remuda unless given")->type_name("NAME");
  command.add_option("--title", flags->title, "What people see in Jupyter")->type_name("TEXT");
  command.add_option("--python", flags->python, "The Python that it runs; that of this shell unless given")
      ->type_name("PROGRAM");
  add_request_options(command, flags->run.request);
  add_turn_options(command, flags->run);
  add_machine_options(command, flags->run.machine);
  command.footer(kJupyterFooter);
}

}  // namespace remuda::cli
