// TaskList: the commands of `remuda run --tasks`, one for each line of a file, whose content is not trusted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace remuda::run {

struct Task {
  int line = 0;  ///< of the file, from 1
  std::string text;
};

struct TaskList {
  std::vector<Task> tasks;
  std::vector<std::string> command;  ///< into which each line is inserted; empty: the line itself is a shell command

  bool empty() const { return tasks.empty(); }
  /// What runs for a task: /bin/sh -c TEXT, or the command with TEXT in place of each {}; without {}, TEXT is appended.
  std::vector<std::string> argv(size_t task) const;
};

/// Skips empty lines, and those that start with #; a carriage return at the end of a line is not part of it. A usage
/// error that names `file` and the line where a line is not UTF-8 text; also where there is no task. Pure.
Result<std::vector<Task>> parse_tasks(std::string_view text, const std::string& file);

/// The text of a file, or with "-" of stdin. A usage error where it is not a regular file, or larger than 16 MiB.
Result<std::string> read_task_file(const std::string& path);

}  // namespace remuda::run
