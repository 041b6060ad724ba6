// How good placement is, and how long it takes.
//
// Good: a replay of jobs on every recorded machine, beside random choice, index order and the best-effort rule of
// Kubernetes' device plugin. Ends with status 1 if remuda is worse than that rule anywhere, or than index order.
// Long: one placement on the recorded machines with 16 GPUs and on 8, with the links prepared once, and from scratch.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <ctime>
#include <fmt/format.h>
#include <random>

#include "bench/placement_replay.h"
#include "place/place.h"

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

struct Times {
  double p50_ms, p99_ms;
};

/// Of this thread: placement waits for nothing, and what else the machine does is not its doing.
double processor_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

template <typename Work>
Times time_of(int repeats, const Work& work) {
  std::vector<double> ms;
  for (int i = 0; i < repeats; ++i) {
    const double start = processor_ms();
    work(i);
    ms.push_back(processor_ms() - start);
  }
  std::ranges::sort(ms);
  const auto at = [&](double part) { return ms[static_cast<size_t>(part * static_cast<double>(ms.size() - 1))]; };
  return {at(0.5), at(0.99)};
}

/// Placements of one size on a machine where a random half of the other GPUs is held; every other time, none is.
void print_time(const ReplayMachine& machine, const Layout& prepared, int count, int repeats) {
  std::mt19937_64 draw(1);
  std::vector<std::vector<Held>> loads(static_cast<size_t>(repeats));
  for (size_t i = 0; i < loads.size(); i += 2)
    for (size_t gpu = 0; gpu < machine.size(); ++gpu)
      if (static_cast<size_t>(count) + loads[i].size() < machine.size() && draw() % 2 == 0)
        loads[i].push_back({.device = machine.inventory.devices[machine.gpus[gpu]].id});
  const Request request{.count = count};
  const auto warm = time_of(repeats, [&](int i) { return place(prepared, request, loads[static_cast<size_t>(i)]); });
  const auto cold =
      time_of(repeats, [&](int i) { return place(Layout(machine.inventory), request, loads[static_cast<size_t>(i)]); });
  fmt::print("| {} | {} | {:.3f} / {:.3f} | {:.3f} / {:.3f} |\n", machine.name, count, warm.p50_ms, warm.p99_ms,
             cold.p50_ms, cold.p99_ms);
  std::fflush(stdout);
}

void print_times(const std::vector<ReplayMachine>& machines, int repeats) {
  fmt::print("\nProcessor time of one placement, explanation and all: p50 / p99 in ms, {} times each.\n\n", repeats);
  fmt::print("| machine | GPUs wanted | links prepared | from scratch |\n|---|---|---|---|\n");
  for (const ReplayMachine& machine : machines) {
    if (machine.size() < RingTable::kMaxDevices && machine.name != "nv-dgx1-v100-8gpu-4nic") continue;
    Layout prepared(machine.inventory);
    prepared.prepare();
    for (int count = 1; count <= static_cast<int>(machine.size()); ++count)
      print_time(machine, prepared, count, repeats);
  }
}

}  // namespace
}  // namespace remuda::bench

int main(int argc, char** argv) {
  using namespace remuda;
  CLI::App app("Judges placement by a replay of jobs on every recorded machine, and times it.");
  std::string folder = REMUDA_MACHINES;
  size_t jobs = 4000;
  int seeds = 10, repeats = 1000;
  bool only_times = false;
  app.add_option("--machines", folder, "folder of recorded machines");
  app.add_option("--jobs", jobs, "jobs per replay")->check(CLI::Range(100, 1'000'000));
  app.add_option("--seeds", seeds, "replays per machine and policy")->check(CLI::Range(1, 1000));
  app.add_option("--repeats", repeats, "placements timed per size; 0: none")->check(CLI::Range(0, 1'000'000));
  app.add_flag("--only-times", only_times, "no replay");
  CLI11_PARSE(app, argc, argv);
  const auto machines = bench::replay_machines(folder);
  if (!machines) {
    fmt::print(stderr, "{}\n", machines.error().message);
    return 1;
  }
  const bool lost = !only_times && bench::print_quality(*machines, jobs, seeds);
  if (repeats > 0) bench::print_times(*machines, repeats);
  return lost ? 1 : 0;
}
