// The terms of a run, which must be the same on all ranks, for the handshake (comm/terms.h).
#pragma once

#include "comm/terms.h"
#include "job/train_job.h"
#include "measure/plan.h"

namespace remuda::train {

/// The run's id, remuda's version (libtorch's may differ: it does between unlike devices), the
/// job's settings, and the content of its files, not their paths: ranks on other machines may have their files
/// elsewhere. A file that cannot be read has "not readable" as its value: opening it later gives the error.
comm::Terms terms_of(const job::TrainJob& job, const std::string& run_id);
/// Of these, the content of its files.
comm::Terms terms_of_content(const job::TrainJob& job);
/// The run's id, from the environment, and remuda's version alone: of a program of the user's.
comm::Terms terms_of_run();
comm::Terms terms_of(const measure::Plan& plan);

}  // namespace remuda::train
