// Tests only: the job whose ranks are lost, and what its weights are compared by.
#pragma once

#include <string>

#include "tests/train_job_files.h"

namespace remuda::tests {

constexpr int kElasticSteps = 96;  // of 16 epochs

/// Three ranks on two devices, slowed so that a run takes seconds, asleep for most of them.
JobText three_ranks();

/// Where that job was run without a loss, once for all tests.
const ScratchFolder& whole_run();

/// |a - b| / |b| over all values of two files of float32.
double file_difference(const std::string& a, const std::string& b);

}  // namespace remuda::tests
