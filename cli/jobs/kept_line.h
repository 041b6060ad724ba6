// KeptLine: the command line of a `remuda run`, kept so that `remuda rerun` can start the job again.
//
// It is kept in the user's own folder and not in the pool: in a pool for all users others can write too, and a command
// that runs as a user must not come from there.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pool/job.h"
#include "run/message.h"

namespace remuda::cli {

struct KeptLine {
  std::vector<std::string> flags;    ///< "--gpus=2": long names, each with its value; only those that describe the job
  std::vector<std::string> command;  ///< each argument unchanged
  std::string folder;                ///< the working folder of that call

  /// The value of --NAME, several joined by commas; nothing where it was not given.
  std::optional<std::string> flag(const std::string& name) const;
  bool operator==(const KeptLine&) const = default;
};

/// An option as it was given, "--gpus=2", by its long name; empty where it was not.
std::vector<std::string> words_of(const CLI::Option& option);

/// The line as CLI11 parsed it.
KeptLine line_of(const CLI::App& run, std::vector<std::string> command);

/// Keeps the line at the first message with the job's number; true once it is kept. Where it cannot be, the job still
/// runs, but cannot be run again. With `survives`, it is there after a loss of power, too.
std::function<bool(const run::Message&)> keeper_of(KeptLine line, std::string pool, bool survives);

/// The folder of the lines of jobs of this pool, and what else is kept of them.
Result<std::string> folder_of_lines(const std::string& pool);

/// The line by which `job` was started. A usage error where none was kept, or only that of another job: a new pool
/// counts from 1 again.
Result<KeptLine> read_kept_line(const std::string& pool, const pool::Job& job);

}  // namespace remuda::cli
