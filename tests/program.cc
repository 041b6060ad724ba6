#include "tests/program.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

#include "base/clock.h"

namespace remuda::tests {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

process::ChildProcess start(std::vector<std::string> argv, const process::Environment& environment,
                            const ScratchFolder& output) {
  const std::string line = "exec \"$@\" >'" + output.path("out") + "' 2>'" + output.path("err") + "'";
  argv.insert(argv.begin(), {"/bin/sh", "-c", line, "sh"});
  auto process = process::ChildProcess::spawn({.argv = std::move(argv), .environment = environment});
  if (!process) throw std::runtime_error(process.error().message);
  return std::move(*process);
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Finished& finished) {
  return stream << (finished.timed_out ? "still ran" : to_string(finished.exit)) << "\nstdout:\n"
                << finished.out << "stderr:\n"
                << finished.err;
}

RunningProgram::RunningProgram(const std::vector<std::string>& argv, const process::Environment& environment)
    : process_(start(argv, environment, output_)) {}

Finished RunningProgram::finish(double patience_s) {
  pollfd ended{process_.pidfd(), POLLIN, 0};
  ::poll(&ended, 1, static_cast<int>(patience_s * 1000));
  const auto exit = process_.exit_state();
  return {exit.value_or(process::ExitState{-1, 0}), !exit, out(), err()};
}

Finished run(const std::vector<std::string>& argv, const process::Environment& environment) {
  return RunningProgram(argv, environment).finish();
}

bool eventually(const std::function<bool()>& condition, double patience_s) {
  const double deadline_s = monotonic_s() + patience_s;
  while (!condition()) {
    if (monotonic_s() > deadline_s) return false;
    steady_clock().sleep_s(0.02);
  }
  return true;
}

std::vector<pid_t> children_of(pid_t parent) {
  const std::string process = "/proc/" + std::to_string(parent);
  std::istringstream list(text_of(process + "/task/" + std::to_string(parent) + "/children"));
  return {std::istream_iterator<pid_t>(list), {}};
}

bool is_running(pid_t pid) {
  const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');  // "PID (NAME) STATE ..."
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return false;
  const char state = stat[name_end + 2];
  return state != 'Z' && state != 'X';
}

bool all_gone(const std::vector<pid_t>& pids) { return std::none_of(pids.begin(), pids.end(), is_running); }

}  // namespace remuda::tests
