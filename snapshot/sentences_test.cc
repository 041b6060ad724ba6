// What the terminal says of a snapshot, and the page (web/page/test/sentences.test.js), stands in
// testdata/sentences.json.
#include "snapshot/sentences.h"

#include <array>
#include <gtest/gtest.h>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "snapshot/hosts.h"

namespace remuda::snapshot {
namespace {

/// As the page calls them.
const std::map<State, std::string> kStates{
    {State::working, "working"}, {State::idle, "idle"},       {State::held, "held"},
    {State::foreign, "foreign"}, {State::drained, "drained"}, {State::free, "free"},
    {State::unclear, "unclear"}, {State::lost, "lost"},       {State::unknown, "unknown"}};

Histories histories_of(const Json& one) {
  Histories histories;
  if (!one.contains("busy")) return histories;
  for (const auto& [key, values] : one["busy"].items()) {
    Series busy;
    for (const Json& value : values) busy.push_back(value.is_null() ? std::nullopt : std::optional<double>(value));
    histories[key] = {key, 0, one["step_s"], {{"busy", std::move(busy)}}};
  }
  return histories;
}

Json said_of(const Json& one) {
  const Seen seen = seen_in(one["snapshot"]).value();
  Json devices = Json::array(), queue = Json::array(), runs = Json::array(), costs = Json::array(),
       missing = Json::array(), agents = Json::array();
  for (const Host& host : seen.hosts) {
    if (const std::string agent = agent_sentence(host, seen.time_s, "07:31"); !agent.empty()) agents.push_back(agent);
    for (const View& view : host.devices)
      devices.push_back({{"key", view.key}, {"state", kStates.at(view.state)}, {"holders", view.holders}});
    for (const Waiting& job : host.waiting) queue.push_back(queue_sentence(job, seen.time_s));
    for (const Lease& lease : host.leases)
      if (const std::string cost = cost_text(lease.use); !cost.empty()) costs.push_back(cost);
    for (const Run& run : host.runs) runs.push_back(run_sentence(run));
  }
  for (const auto& [reason, of] : missing_reasons(seen)) missing.push_back({{"reason", reason}, {"of", of}});
  return {{"sentence", top_sentence(seen, histories_of(one))},
          {"devices", devices},
          {"agents", agents},
          {"queue", queue},
          {"runs", runs},
          {"costs", costs},
          {"missing", missing}};
}

TEST(SnapshotTold, PageAndTerminalSayTheSame) {
  const std::string text = read_text(REMUDA_SENTENCES, 1 << 20).value();
  const Json cases = parse_json(text, "sentences.json").value();
  for (const Json& one : cases) EXPECT_EQ(to_pretty(said_of(one)), to_pretty(one["told"])) << one["name"];
  EXPECT_GE(cases.size(), 10u);
}

}  // namespace
}  // namespace remuda::snapshot
