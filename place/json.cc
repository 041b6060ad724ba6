#include "place/answer.h"

namespace remuda::place {
namespace {

Json list(const std::vector<std::string>& texts) {
  Json json = Json::array();
  for (const std::string& text : texts) json.push_back(text);
  return json;
}

Json optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json rejected(const std::vector<Explanation::Rejected>& all) {
  Json json = Json::array();
  for (const auto& [device, reason] : all) json.push_back({{"device", device}, {"reason", reason}});
  return json;
}

Json set(const std::optional<Explanation::Set>& set) {
  return set ? Json{{"devices", list(set->devices)}, {"gbps", set->gbps}} : Json(nullptr);
}

Json explanation(const Explanation& e) {
  Json links = Json::array(), runners_up = Json::array();
  for (const auto& link : e.links)
    links.push_back({{"a", link.a},
                     {"b", link.b},
                     {"label", link.label},
                     {"gbps", optional(link.gbps)},
                     {"measured", link.measured}});
  for (const auto& runner : e.runners_up)
    runners_up.push_back({{"devices", list(runner.devices)}, {"lost", runner.lost}});
  Json json{{"devices", list(e.devices)}};
  json["ring"] = e.ring ? Json{{"gbps", e.ring->gbps},
                               {"slowest", {e.ring->a, e.ring->b}},
                               {"label", e.ring->label},
                               {"reason", e.ring->reason}}
                        : Json(nullptr);
  json["links"] = std::move(links);
  json["numa_nodes"] = e.numa_nodes;
  json["pcie_roots"] = list(e.pcie_roots);
  json["left"] = {{"devices", list(e.left)}, {"best_pair", set(e.left_pair)}, {"best_four", set(e.left_four)}};
  json["runners_up"] = std::move(runners_up);
  json["rejected"] = rejected(e.rejected);
  json["considered"] = e.considered;
  json["exhaustive"] = e.exhaustive;
  json["one_model"] = e.one_model;
  if (!e.shares_basis.empty()) json["shares_basis"] = e.shares_basis;
  json["notes"] = list(e.notes);
  return json;
}

}  // namespace

Json to_json(const Placement& placement) {
  Json json{{"devices", list(placement.devices)}};
  if (!placement.shares.empty()) json["shares"] = placement.shares;
  if (!placement.cores.empty()) json["cores"] = placement.cores;
  json["explanation"] = explanation(placement.explanation);
  return json;
}

Json to_json(const Refusal& refusal) {
  Json json{{"refused", refusal.never ? "never" : "not now"}, {"sentence", refusal.sentence}};
  Json blockers = Json::array();
  for (const Blocker& blocker : refusal.blockers)
    blockers.push_back({{"device", blocker.device},
                        {"holder", blocker.holder},
                        {"share", blocker.share},
                        {"since_s", optional(blocker.since_s)},
                        {"until_s", optional(blocker.until_s)}});
  json["blockers"] = std::move(blockers);
  json["earliest_s"] = optional(refusal.earliest_s);
  json["rejected"] = rejected(refusal.rejected);
  return json;
}

}  // namespace remuda::place
