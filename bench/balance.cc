// What the balance law is worth on simulated devices (balance/simulation.h), beside an even split, a split in
// proportion to the last step, and an oracle. Nothing is timed: the figures are the same on every machine.

#include <CLI/CLI.hpp>
#include <array>
#include <fmt/format.h>

#include "balance/simulation.h"
#include "base/table.h"
#include "bench/figure.h"

namespace remuda::bench {
namespace {

enum LawIndex { kEven, kProportional, kRemuda, kOracle };
constexpr std::array<const char*, 4> kNames{"even", "proportional", "remuda", "oracle"};
constexpr std::array<balance::MakeLaw, 4> kLaws{balance::even_law, balance::proportional_law, balance::balancer_law,
                                                balance::oracle_law};

struct Case {
  balance::Scenario scenario;
  std::array<balance::Verdict, 4> verdicts;
};

std::vector<Case> judge_all(int seeds) {
  std::vector<Case> cases;
  for (const balance::Scenario& scenario : balance::standard_scenarios()) {
    Case& judged = cases.emplace_back(scenario);
    for (size_t law = 0; law < kLaws.size(); ++law) judged.verdicts[law] = judge(scenario, kLaws[law], seeds);
  }
  return cases;
}

std::string table_of(const std::vector<Case>& cases) {
  Table table({"scenario", "law", "efficiency %", "of oracle %", "changes", "most", "near after", "near again after"});
  for (const auto& [scenario, verdicts] : cases)
    for (size_t law = 0; law < verdicts.size(); ++law) {
      const balance::Verdict& verdict = verdicts[law];
      table.add({scenario.name, kNames[law], fmt::format("{:.1f}", verdict.efficiency * 100),
                 fmt::format("{:.1f}", verdict.of_oracle * 100), fmt::format("{:.1f}", verdict.changes),
                 fmt::format("{}", verdict.most_changes), fmt::format("{:.1f}", verdict.near_after),
                 fmt::format("{:.1f}", verdict.near_again_after)});
    }
  return table.text();
}

/// remuda's figures: the peer is the proportional law, the limit is the oracle.
std::vector<Figure> figures_of(const std::vector<Case>& cases, int seeds) {
  std::vector<Figure> figures;
  for (const auto& [scenario, verdicts] : cases) {
    const Json parameters{
        {"scenario", scenario.name}, {"steps", scenario.steps}, {"seeds", seeds}, {"peer", kNames[kProportional]}};
    const auto add = [&](const char* name, const char* unit, auto value_of, bool more_is_better) {
      const double mine = value_of(verdicts[kRemuda]), peer = value_of(verdicts[kProportional]);
      const double better = more_is_better ? mine : peer, worse = more_is_better ? peer : mine;
      figures.push_back({name, parameters, mine, unit, peer, {}, value_of(verdicts[kOracle])});
      if (worse > 0) figures.back().ratio = better / worse;
    };
    add("balance_efficiency", "%", [](const balance::Verdict& verdict) { return verdict.efficiency * 100; }, true);
    add("balance_of_oracle", "%", [](const balance::Verdict& verdict) { return verdict.of_oracle * 100; }, true);
    add("balance_changes", "changes per run", [](const balance::Verdict& verdict) { return verdict.changes; }, false);
    add("balance_near_after", "steps", [](const balance::Verdict& verdict) { return verdict.near_after; }, false);
    add(
        "balance_near_again_after", "steps", [](const balance::Verdict& verdict) { return verdict.near_again_after; },
        false);
  }
  return figures;
}

}  // namespace
}  // namespace remuda::bench

int main(int argc, char** argv) {
  using namespace remuda;
  CLI::App app("Judges the balance law on simulated devices, beside simpler laws and an oracle.");
  bool json = false;
  int seeds = 40;
  app.add_flag("--json", json, "print one JSON object per figure, a line each");
  app.add_option("--seeds", seeds, "runs per law and scenario")->check(CLI::Range(1, 10000));
  CLI11_PARSE(app, argc, argv);
  const auto cases = bench::judge_all(seeds);
  fmt::print("{}", json ? bench::as_json_lines(bench::figures_of(cases, seeds)) : bench::table_of(cases));
}
