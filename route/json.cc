#include "route/json.h"

#include "route/bound.h"

namespace remuda::route {
namespace {

constexpr int kVersion = 1;

Json ids_of(const Network& network, const std::vector<size_t>& devices) {
  Json ids = Json::array();
  for (const size_t device : devices) ids.push_back(network.ids[device]);
  return ids;
}

Json cost_json(const Cost& cost) { return {{"latency_s", cost.latency_s}, {"s_per_byte", cost.s_per_byte}}; }

Json candidate_json(const Network& network, const Candidate& candidate) {
  Json json{{"algorithm", to_string(candidate.pattern.algorithm)}, {"order", ids_of(network, candidate.order)}};
  if (!candidate.island_sizes.empty()) json["island_sizes"] = candidate.island_sizes;
  json["exact"] = candidate.exact;
  json.update(cost_json(candidate.cost));
  return json;
}

Json links_json(const Network& network) {
  Json links = Json::array();
  for (const Channel& channel : network.channels)
    links.push_back({{"name", channel.name}, {"gbps", channel.gbps}, {"measured", channel.measured}});
  return links;
}

Json transfer_json(const Network& network, const Transfer& transfer) {
  const Route& route = network.routes[transfer.from][transfer.to];
  return {{"from", network.ids[transfer.from]},
          {"to", network.ids[transfer.to]},
          {"begin", transfer.begin},
          {"end", transfer.end},
          {"adds", transfer.adds},
          {"path", route.label},
          {"gbps", route.gbps},
          {"latency_us", route.latency_us},
          {"measured", route.measured},
          {"links", route.channels}};
}

Json rounds_json(const Network& network, const std::vector<Round>& rounds) {
  Json list = Json::array();
  for (const Round& round : rounds) {
    Json transfers = Json::array();
    for (const Transfer& transfer : round.transfers) transfers.push_back(transfer_json(network, transfer));
    Json json{{"step", round.step}};
    json.update(cost_json(round.cost));
    json["transfers"] = std::move(transfers);
    list.push_back(std::move(json));
  }
  return list;
}

Json limit_json(const Network& network, const Limit& limit) {
  return {{"link", limit.channel},
          {"name", network.channels[limit.channel].name},
          {"share", limit.link_share},
          {"latency_share", limit.latency_share}};
}

}  // namespace

Json to_json(const Plan& plan, double bytes) {
  const Network& network = plan.network;
  const Candidate& best = plan.best(bytes);
  const std::vector<Round> rounds = rounds_of(network, best);
  Json sizes = Json::array(), algorithms = Json::array();
  for (const auto& [from_bytes, at] : plan.ranges) {
    Json range{{"from_bytes", from_bytes}};
    range.update(candidate_json(network, plan.candidates[at]));
    sizes.push_back(std::move(range));
  }
  for (const size_t at : plan.by_algorithm(bytes)) {
    Json each = candidate_json(network, plan.candidates[at]);
    each["seconds"] = plan.candidates[at].cost.seconds(bytes);
    algorithms.push_back(std::move(each));
  }
  Json chosen = candidate_json(network, best);
  chosen["seconds"] = best.cost.seconds(bytes);
  chosen["limit"] = limit_json(network, limit_of(network, rounds, bytes));
  chosen["rounds"] = rounds_json(network, rounds);
  return {{"version", kVersion},
          {"collective", "allreduce"},
          {"bytes", bytes},
          {"devices", network.ids},
          {"labels", network.devices},
          {"links", links_json(network)},
          {"best", std::move(chosen)},
          {"sizes", std::move(sizes)},
          {"algorithms", std::move(algorithms)},
          {"least_seconds", least_seconds(plan.least, bytes)},
          {"index_ring_seconds", plan.index_ring ? Json(plan.index_ring->seconds(bytes)) : Json()}};
}

}  // namespace remuda::route
