// Rules over several keys. Internal to job.
#pragma once

#include <string>
#include <toml++/toml.h>

#include "base/result.h"
#include "job/schema.h"
#include "job/train_job.h"

namespace remuda::job {

/// Whether the key is for jobs of this kind; see Key::when.
bool belongs(const Key& key, toml::table& table);

/// One kind of model, and only keys that belong to the job's kinds; see JobOverrides for what is dropped instead.
/// To be called before the values are read. `name` is the job file's.
Result<void> settle_kinds(toml::table& table, const std::string& name);

/// Keys whose values must fit each other. To be called with the job that was read from `table`.
Result<void> check_job(const TrainJob& job, toml::table& table, const std::string& name);
/// Those that must fit the number of devices.
Result<void> check_counts(const TrainJob& job, toml::table& table, const std::string& name);

}  // namespace remuda::job
