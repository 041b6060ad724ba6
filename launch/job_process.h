// JobProcess: a program of a job, started the way the user's shell would have started it.
//
// It reads the caller's stdin and writes to its stdout and stderr unless told otherwise, joins the process group of the
// `remuda run` it belongs to, so that a terminal treats both as one (Ctrl-C, Ctrl-Z), and has the caller's first signal
// mask. The kernel kills it when the thread that started it ends.
#pragma once

#include <signal.h>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "launch/affinity.h"
#include "launch/process.h"

namespace remuda {

inline constexpr int kOwnFailure = 125, kCannotExecute = 126, kNotFound = 127;
inline constexpr int kNever = 3, kNotNow = 4;

/// As a shell shows it: the status, or 128 and the signal's number.
inline int exit_code(const ExitState& state) { return state.signal > 0 ? 128 + state.signal : state.status; }

struct JobProcess {
  std::vector<std::string> argv;   ///< argv[0] is searched in PATH
  Environment environment;         ///< added to the caller's
  std::vector<std::string> unset;  ///< taken from it
  std::string folder;              ///< where it starts; empty: where the caller is
  Affinity affinity;
  int group = 0;                    ///< process group to join; one of its own where there is no such group
  int in = -1, out = -1, err = -1;  ///< in place of the caller's
  int lifeline = -1;                ///< a descriptor that it inherits (pool/lifeline.h); -1: none
  sigset_t mask{};                  ///< signals held back
  int cgroup = -1;                  ///< open folder of the cgroup that it and all its children are in; -1: the caller's
};

struct StartFailure {
  int status;  ///< kNotFound, kCannotExecute or kOwnFailure
  std::string sentence;
};

/// The process id, once the program runs.
tl::expected<int, StartFailure> start(const JobProcess& process);

}  // namespace remuda
