// A command of another manager of this machine, asked for what it knows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace remuda::cluster {

/// What a program prints, on stdout and stderr. An error where it fails.
using Run = std::function<Result<std::string>(const std::vector<std::string>& argv)>;

/// Runs it, found on PATH, without input; killed after `limit_s`, or when it has printed more than some MiB.
Result<std::string> run_command(const std::vector<std::string>& argv, double limit_s);

}  // namespace remuda::cluster
