// Comparison: two ways to train one job, A and B, by pairs of runs with the same seed, and what the difference is
// worth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace remuda::cli {

/// A run to make, or one that was made.
struct ComparedRun {
  bool is_b = false;
  int pair = 0;  ///< from 0; runs of one pair have the same seed, and no other pair has it
  uint64_t seed = 0;
  Json report;  ///< null: not made yet, or not to its end
};

/// The runs of so many pairs in their order: A B, B A, A B, ..., so that neither way is always the first of a pair on a
/// machine that warms up or fills. The seeds are `first_seed`, and those after it.
std::vector<ComparedRun> runs_of(int pairs, uint64_t first_seed);

struct Comparison {
  std::string job;                    ///< its file
  std::vector<std::string> settings;  ///< what makes B of A: KEY=VALUE
  std::vector<ComparedRun> runs;
  bool stopped = false;  ///< by the user: not all runs have reports
};

/// docs/run-report.md says what is in it.
Json to_json(const Comparison& comparison);

/// A line per result, and a sentence on whether B is faster. Only pairs of which both runs are there count.
std::string comparison_text(const Comparison& comparison);

}  // namespace remuda::cli
