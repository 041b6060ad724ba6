// TaskList: the commands of `remuda run --tasks`, one for each line of a file that anybody may have written.
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
  std::vector<std::string> command;  ///< what each line is put into; empty: the line itself is a command of the shell

  bool empty() const { return tasks.empty(); }
  /// What runs for a task: /bin/sh -c TEXT, or the command with TEXT in place of each {}; where it has none, behind it.
  std::vector<std::string> argv(size_t task) const;
};

/// Empty lines, and those that start with #, are passed over; a carriage return at a line's end is no part of it. A
/// usage error that names `file` and the line for what is not text in UTF-8, and where there is no task. Pure.
Result<std::vector<Task>> parse_tasks(std::string_view text, const std::string& file);

/// The text of a file, or with "-" of stdin. A usage error for what is no regular file, and above 16 MiB.
Result<std::string> read_task_file(const std::string& path);

}  // namespace remuda::run
