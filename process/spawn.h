// Spawn: starts a program, and reports the exact cause of a failure.
//
//   Result: auto pid = spawn({.argv = {"python", "train.py"}, .folder = "/home/ada"});
//           if (!pid) fmt::print("{}\n", pid.error().sentence);      // "there is no program python"
#pragma once

#include <signal.h>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "process/affinity.h"

namespace remuda::process {

/// Names and values of environment variables.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// How a process ended: with a status, or by a signal.
struct ExitState {
  int status = 0;
  int signal = 0;
  bool ok() const { return status == 0 && signal == 0; }
};
/// "exited with status 3", "killed by signal 9 (Killed)".
std::string to_string(const ExitState& state);
/// As a shell shows it: the status, or 128 plus the signal's number.
inline int exit_code(const ExitState& state) { return state.signal > 0 ? 128 + state.signal : state.status; }

/// The exit codes of programs that start others, as of env(1) and timeout(1).
inline constexpr int kOwnFailure = 125, kCannotExecute = 126, kNotFound = 127;

/// A program to start. All that is not set here is inherited from the caller.
struct ProcessSpec {
  std::vector<std::string> argv;    ///< argv[0] is searched in PATH, unless it has a slash
  Environment environment;          ///< added to the caller's, or in place of it where the name is the same
  std::vector<std::string> unset;   ///< taken from it
  std::string folder;               ///< where it starts; empty: the caller's
  Affinity affinity;                ///< CPUs and memory nodes
  bool must_bind = false;           ///< not being able to use those CPUs is an error; otherwise they are a preference
  int group = 0;                    ///< process group to join; one of its own where there is no such group
  int in = -1, out = -1, err = -1;  ///< in place of the caller's stdin, stdout and stderr
  std::vector<int> inherited;       ///< further descriptors that it keeps, with the same numbers
  sigset_t mask{};                  ///< blocked signals
  int cgroup = -1;                  ///< open folder of the cgroup that it and all its children are in; -1: the caller's
  std::vector<int> further_cgroups;  ///< the same, in other trees
};

struct StartFailure {
  int status;  ///< kNotFound, kCannotExecute or kOwnFailure
  std::string sentence;
};

/// The process id, once the program runs. The kernel kills it when the thread that called this ends, kill -9 included:
/// call it from a thread that lives as long as the program is to run. The caller must wait for the process.
tl::expected<int, StartFailure> spawn(const ProcessSpec& spec);

}  // namespace remuda::process
