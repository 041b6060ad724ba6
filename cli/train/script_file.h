// A file that is to be a TorchScript program, looked at without libtorch.
#pragma once

#include <string>

#include "base/result.h"

namespace remuda::cli {

/// Refuses a file that is not TorchScript, and says what it is where that is known. `key`: of the job, that names it.
Result<void> check_script_file(const std::string& path, const std::string& key);

}  // namespace remuda::cli
