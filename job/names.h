// Names of keys: which exist, and which was meant by one that does not. Internal to job.
#pragma once

#include <string>
#include <toml++/toml.h>

#include "base/result.h"

namespace remuda::job {

/// "unknown key train.epoch; did you mean train.epochs?", or without the question when nothing is near.
std::string unknown_key(const std::string& name);

/// An error for the first key that does not exist, and for a value where a table must be.
Result<void> check_names(const toml::table& table);

}  // namespace remuda::job
