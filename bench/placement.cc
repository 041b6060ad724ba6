// How good placement is, and how long it takes.
//
// Good: a replay of jobs on every recorded machine, beside random choice, index order and the best-effort rule of
// Kubernetes' device plugin. Ends with status 1 if remuda is worse than that rule anywhere, or than index order.
// Long: one placement of each size on each of them, and on machines of 16 GPUs made for it (bench/placement_times.h).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "bench/placement_replay.h"
#include "bench/placement_times.h"

namespace remuda::bench {
namespace {

enum PolicyIndex { kRandom, kIndex, kPairScore, kRemuda };
constexpr size_t kPolicies = 4;
using Results = std::array<ReplayResult, kPolicies>;

Results judge(const ReplayMachine& machine, size_t jobs, int seeds) {
  const std::array<Policy, kPolicies> policies{random_policy(1), index_policy(), pair_score_policy(machine),
                                               remuda_policy(machine)};
  Results results;
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto stream = replay_jobs(machine.size(), jobs, static_cast<uint64_t>(seed));
    for (size_t i = 0; i < kPolicies; ++i) {
      const ReplayResult one = replay(machine, stream, policies[i]);
      results[i].mean += one.mean / seeds;
      results[i].best += one.best / seeds;
    }
  }
  return results;
}

bool is_at_least(const ReplayResult& mine, const ReplayResult& other) {
  constexpr double kRounding = 1e-9;
  return mine.mean >= other.mean - kRounding && mine.best >= other.best - kRounding;
}

/// Prints the table; whether remuda lost anywhere.
bool print_quality(const std::vector<ReplayMachine>& machines, size_t jobs, int seeds) {
  fmt::print("Mean ring value, and share of jobs that got a best set: {} jobs, {} seeds.\n\n", jobs, seeds);
  fmt::print("| machine | random | index order | best-effort pair score | remuda |\n|---|---|---|---|---|\n");
  bool lost = false;
  for (const ReplayMachine& machine : machines) {
    const Results results = judge(machine, jobs, seeds);
    fmt::print("| {} |", machine.name);
    for (const ReplayResult& result : results) fmt::print(" {:.3f} / {:.1f} % |", result.mean, 100 * result.best);
    const bool won =
        is_at_least(results[kRemuda], results[kPairScore]) && is_at_least(results[kRemuda], results[kIndex]);
    fmt::print("{}\n", won ? "" : " remuda lost");
    std::fflush(stdout);
    lost = lost || !won;
  }
  return lost;
}

}  // namespace
}  // namespace remuda::bench

int main(int argc, char** argv) {
  using namespace remuda;
  CLI::App app("Judges placement by a replay of jobs on every recorded machine, and times it.");
  std::string folder = REMUDA_MACHINES;
  size_t jobs = 4000;
  int seeds = 10, repeats = 1000;
  bool only_times = false, each_size = false, answers = false;
  app.add_option("--machines", folder, "folder of recorded machines");
  app.add_option("--jobs", jobs, "jobs per replay")->check(CLI::Range(100, 1'000'000));
  app.add_option("--seeds", seeds, "replays per machine and policy")->check(CLI::Range(1, 1000));
  app.add_option("--repeats", repeats, "placements timed per size; 0: none")->check(CLI::Range(0, 1'000'000));
  app.add_flag("--only-times", only_times, "no replay");
  app.add_flag("--each-size", each_size, "a line for each number of GPUs, not for the slowest alone");
  app.add_flag("--answers", answers, "print each answer that would be timed, to compare with another version's");
  CLI11_PARSE(app, argc, argv);
  const auto machines = bench::replay_machines(folder);
  if (!machines) {
    fmt::print(stderr, "{}\n", machines.error().message);
    return 1;
  }
  const auto to_time = bench::timed_machines(*machines);
  if (answers) {
    bench::print_answers(to_time, repeats);
    return 0;
  }
  const bool lost = !only_times && bench::print_quality(*machines, jobs, seeds);
  if (repeats > 0) bench::print_times(to_time, repeats, each_size);
  return lost ? 1 : 0;
}
