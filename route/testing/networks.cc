#include "route/testing/networks.h"

#include <algorithm>
#include <rapidcheck.h>

#include "base/check.h"
#include "base/file.h"
#include "topology/matrix.h"

namespace remuda::route {
namespace {

Network unjoined(size_t size) {
  Network network;
  for (size_t i = 0; i < size; ++i) {
    network.devices.push_back("gpu:" + std::to_string(i));
    network.ids.push_back("GPU-" + std::to_string(i));
  }
  network.routes.assign(size, std::vector<Route>(size));
  return network;
}

size_t add_channel(Network& network, std::string name, double gbps) {
  network.channels.push_back({std::move(name), gbps});
  return network.channels.size() - 1;
}

/// A link's two directions; one channel twice where it is half duplex.
std::pair<size_t, size_t> add_link(Network& network, const std::string& name, double gbps, bool half_duplex = false) {
  const size_t there = add_channel(network, name, gbps);
  return {there, half_duplex ? there : add_channel(network, name, gbps)};
}

void join(Network& network, size_t a, size_t b, double gbps, double latency_us) {
  const auto [there, back] = add_link(network, network.devices[a] + " - " + network.devices[b], gbps);
  network.routes[a][b] = {"NV1", gbps, latency_us, false, {there}};
  network.routes[b][a] = {"NV1", gbps, latency_us, false, {back}};
}

}  // namespace

Network full_mesh(size_t size, double gbps, double latency_us) {
  Network network = unjoined(size);
  for (size_t a = 0; a < size; ++a)
    for (size_t b = a + 1; b < size; ++b) join(network, a, b, gbps, latency_us);
  return network;
}

Network scattered_mesh(size_t size) {
  Network network = full_mesh(size, 100);
  const double pairs = static_cast<double>(size * size);
  for (size_t a = 0; a < size; ++a)
    for (size_t b = 0; b < a; ++b)
      for (Route* route : {&network.routes[a][b], &network.routes[b][a]}) {
        route->gbps = 100 * (1 - 0.03 * static_cast<double>((a * size + b) * 37 % (size * size)) / pairs);
        route->measured = true;
        network.channels[route->channels[0]].gbps = route->gbps;
      }
  return network;
}

Network relabelled(const Network& network, const std::vector<size_t>& places) {
  Network other = network;
  for (size_t a = 0; a < places.size(); ++a)
    for (size_t b = 0; b < places.size(); ++b) other.routes[a][b] = network.routes[places[a]][places[b]];
  return other;
}

Network star(size_t size, double gbps, double latency_us) {
  Network network = unjoined(size);
  for (size_t i = 0; i < size; ++i) add_link(network, "uplink of " + network.devices[i], gbps);
  for (size_t a = 0; a < size; ++a)
    for (size_t b = 0; b < size; ++b)
      if (a != b) network.routes[a][b] = {"PIX", gbps, latency_us, false, {2 * a, 2 * b + 1}};
  return network;
}

Network two_level(const std::vector<size_t>& islands, double inside_gbps, double between_gbps, double latency_us) {
  std::vector<size_t> island_of;
  for (size_t island = 0; island < islands.size(); ++island) island_of.insert(island_of.end(), islands[island], island);
  Network network = unjoined(island_of.size());
  for (size_t i = 0; i < islands.size(); ++i) add_link(network, "uplink " + std::to_string(i), between_gbps);
  for (size_t a = 0; a < island_of.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      const size_t x = 2 * island_of[a], y = 2 * island_of[b];
      if (x == y) {
        join(network, a, b, inside_gbps, latency_us);
        continue;
      }
      network.routes[a][b] = {"SYS", between_gbps, latency_us, false, {x, y + 1}};
      network.routes[b][a] = {"SYS", between_gbps, latency_us, false, {y, x + 1}};
    }
  return network;
}

Network machine(const std::string& name) {
  const std::string path = REMUDA_MACHINES "/" + name + ".json";
  const auto text = read_text(path);
  REMUDA_CHECK(text.has_value(), "recorded machines are part of the checkout");
  const auto inventory = parse_inventory(*text, path);
  REMUDA_CHECK(inventory.has_value(), "recorded machines are inventories");
  return network_of(*inventory, topology::linked_devices(*inventory));
}

Network arbitrary_network(size_t size) {
  const std::vector<double> speeds{5, 10, 10, 16, 24, 50};
  const auto speed = [&] { return *rc::gen::elementOf(speeds); };
  const auto latency = [] { return *rc::gen::elementOf(std::vector<double>{1, 3, 10}); };
  Network network = unjoined(size);
  const size_t groups = *rc::gen::inRange<size_t>(1, 4);
  std::vector<size_t> group_of(size);
  std::vector<std::pair<size_t, size_t>> own(size), uplinks(groups);
  for (size_t i = 0; i < size; ++i) {
    group_of[i] = *rc::gen::inRange<size_t>(0, groups);
    own[i] = add_link(network, "uplink of " + network.devices[i], speed(), *rc::gen::inRange(0, 4) == 0);
  }
  for (size_t group = 0; group < groups; ++group)
    uplinks[group] = add_link(network, "uplink " + std::to_string(group), speed(), *rc::gen::inRange(0, 4) == 0);
  for (size_t a = 0; a < size; ++a)
    for (size_t b = 0; b < a; ++b) {
      if (*rc::gen::inRange(0, 3) == 0) {
        join(network, a, b, speed(), latency());
        continue;
      }
      std::vector<size_t> there{own[a].first}, back{own[b].first};
      if (group_of[a] != group_of[b]) {
        there.insert(there.end(), {uplinks[group_of[a]].first, uplinks[group_of[b]].second});
        back.insert(back.end(), {uplinks[group_of[b]].first, uplinks[group_of[a]].second});
      }
      there.push_back(own[b].second);
      back.push_back(own[a].second);
      double gbps = speed();
      for (const size_t channel : there) gbps = std::min(gbps, network.channels[channel].gbps);
      const double latency_us = latency();
      network.routes[a][b] = {"SYS", gbps, latency_us, false, there};
      network.routes[b][a] = {"SYS", gbps, latency_us, false, back};
    }
  return network;
}

Sums simulate(const Pattern& pattern) {
  const size_t n = pattern.ranks;
  Sums sums(n, std::vector<std::vector<int>>(pattern.chunks, std::vector<int>(n, 0)));
  for (size_t rank = 0; rank < n; ++rank)
    for (auto& chunk : sums[rank]) chunk[rank] = 1;
  for (const Step& step : pattern.steps) {
    const Sums before = sums;
    for (const Move& move : step)
      for (size_t chunk = move.begin; chunk < move.end; ++chunk)
        for (size_t of = 0; of < n; ++of)
          sums[move.to][chunk][of] = before[move.from][chunk][of] + (move.adds ? sums[move.to][chunk][of] : 0);
  }
  return sums;
}

bool is_all_reduced(const Sums& sums) {
  for (const auto& rank : sums)
    for (const auto& chunk : rank)
      if (std::ranges::count(chunk, 1) != std::ssize(chunk)) return false;
  return true;
}

}  // namespace remuda::route
