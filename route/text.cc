#include "route/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "base/characters.h"
#include "base/table.h"
#include "base/text.h"
#include "route/bound.h"

namespace remuda::route {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kMostChain = 60;   // characters: a longer chain goes on as another one
constexpr size_t kMostLinks = 8;    // of the table of loads
constexpr size_t kMostRounds = 16;  // that are listed, alike ones counted once

const char* known_by(bool measured) { return measured ? "measured" : "assumed"; }

/// Labels without the word that all of them begin with.
std::vector<std::string> short_labels(const Network& network) {
  const auto word = [](const std::string& label) { return label.substr(0, label.find(':') + 1); };
  const std::string first = word(network.devices.front());
  std::vector<std::string> labels = network.devices;
  if (first.empty() || !std::ranges::all_of(labels, [&](const auto& label) { return word(label) == first; }))
    return labels;
  for (std::string& label : labels) label.erase(0, first.size());
  return labels;
}

/// Broken at spaces into lines of kColumns; `head` begins the first one, spaces of its width the others.
std::string wrapped(const std::string& head, const std::string& text) {
  std::string lines = head;
  size_t at = characters(head);
  bool is_first = true;
  for (const std::string& word : split(text, ' ')) {
    if (!is_first && at + 1 + characters(word) > kColumns) {
      lines += "\n" + std::string(characters(head), ' ');
      at = characters(head);
      is_first = true;
    }
    lines += (is_first ? "" : " ") + word;
    at += characters(word) + (is_first ? 0 : 1);
    is_first = false;
  }
  return lines + "\n";
}

std::string name_of(const Candidate& candidate) {
  std::string name = to_string(candidate.pattern.algorithm);
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string limit_text(const Plan& plan, const std::vector<Round>& rounds, double bytes) {
  const Limit limit = limit_of(plan.network, rounds, bytes);
  if (limit.latency_share > 0.5)
    return fmt::format("latency: {:.0f} % of the time is for beginning the transfers of {} rounds",
                       100 * limit.latency_share, rounds.size());
  const Channel& channel = plan.network.channels[limit.channel];
  return fmt::format("{} ({:.1f} GB/s, {}), which {:.0f} % of the time waits for", channel.name, channel.gbps,
                     known_by(channel.measured), 100 * limit.link_share);
}

std::string head_text(const Plan& plan, const Candidate& best, const std::vector<Round>& rounds, double bytes) {
  const double seconds = best.cost.seconds(bytes);
  const size_t steps = best.pattern.steps.size();
  std::string text =
      wrapped(fmt::format("all-reduce of {} over ", human_bytes(bytes)), label_ranges(plan.network.devices));
  text += wrapped("  best      ", fmt::format("{}: {}", name_of(best), order_text(plan.network, best)));
  text += wrapped("  time      ", fmt::format("{} predicted, {:.2f} GB/s; {} round{} for {} step{}",
                                              duration_text(seconds), bytes / seconds / 1e9, rounds.size(),
                                              rounds.size() == 1 ? "" : "s", steps, steps == 1 ? "" : "s"));
  text += wrapped("  limit     ", limit_text(plan, rounds, bytes));
  const double least = least_seconds(plan.least, bytes);
  if (least > 0)
    text += wrapped("  at least  ",
                    fmt::format("{} over these links, where only the devices add up", duration_text(least)));
  text += wrapped("  naive     ", plan.index_ring
                                      ? fmt::format("{} by a ring in the order of the devices",
                                                    duration_text(plan.index_ring->seconds(bytes)))
                                      : "no ring in the order of the devices, as some of its links are not known");
  if (!plan.exact) text += wrapped("  note      ", "not all orders were tried, so that a better one may be there");
  return text;
}

std::string sizes_text(const Plan& plan) {
  Table table({"FROM", "ALGORITHM", "ORDER"});
  for (const auto& [from_bytes, at] : plan.ranges)
    table.add({from_bytes == 0 ? "0" : human_bytes(from_bytes), name_of(plan.candidates[at]),
               order_text(plan.network, plan.candidates[at])});
  table.cut_first(2);
  return table.text(kColumns);
}

std::string algorithms_text(const Plan& plan, double bytes) {
  Table table({"ALGORITHM", "TIME", "OF IT LATENCY", "GB/s"});
  for (const size_t at : plan.by_algorithm(bytes)) {
    const Candidate& each = plan.candidates[at];
    const double seconds = each.cost.seconds(bytes);
    table.add({name_of(each), duration_text(seconds), duration_text(each.cost.latency_s),
               fmt::format("{:.2f}", bytes / seconds / 1e9)});
  }
  return table.text(kColumns);
}

/// "add 3.1 MiB:", or without a size where there are several.
std::string verb_text(const Round& round, double bytes) {
  const Transfer& first = round.transfers.front();
  const auto length = [](const Transfer& transfer) { return transfer.end - transfer.begin; };
  const bool is_even = std::ranges::all_of(
      round.transfers, [&](const Transfer& each) { return std::abs(length(each) - length(first)) < 1e-9; });
  return fmt::format("{}{}", first.adds ? "add" : "copy",
                     is_even ? " " + human_bytes(length(first) * bytes) : " parts");
}

std::string rounds_text(const Plan& plan, const std::vector<Round>& rounds, double bytes) {
  std::string text;
  size_t listed = 0;
  for (size_t first = 0, next = 0; first < rounds.size(); first = next) {
    const auto line = [&](size_t round) {
      return fmt::format("{}: {}", verb_text(rounds[round], bytes), transfers_text(plan.network, rounds[round]));
    };
    for (next = first + 1; next < rounds.size() && line(next) == line(first); ++next) {
    }
    if (++listed > kMostRounds)
      return text + fmt::format("  ... and {} more; --json lists all\n", rounds.size() - first);
    text += wrapped(
        fmt::format("  {:<7}", next == first + 1 ? fmt::format("{}", next) : fmt::format("{}-{}", first + 1, next)),
        line(first));
  }
  return "ROUNDS\n" + text;
}

/// By link, its busier direction.
std::string loads_text(const Plan& plan, const std::vector<Round>& rounds, double bytes, double seconds) {
  const std::vector<double> sums = carried(plan.network, rounds);
  std::map<std::string, size_t> busiest;
  for (size_t channel = 0; channel < sums.size(); ++channel) {
    if (sums[channel] <= 0) continue;
    const auto [at, is_new] = busiest.emplace(plan.network.channels[channel].name, channel);
    if (!is_new && sums[channel] > sums[at->second]) at->second = channel;
  }
  const auto busy = [&](size_t channel) { return sums[channel] * bytes / (plan.network.channels[channel].gbps * 1e9); };
  std::vector<size_t> sorted;
  for (const auto& [name, channel] : busiest) sorted.push_back(channel);
  std::ranges::stable_sort(sorted, [&](size_t a, size_t b) { return busy(a) > busy(b); });
  Table table({"BUSIEST LINKS", "GB/s", "CARRIES", "BUSY"});
  bool is_measured = false;
  for (size_t i = 0; i < std::min(sorted.size(), kMostLinks); ++i) {
    const Channel& channel = plan.network.channels[sorted[i]];
    is_measured = is_measured || channel.measured;
    table.add({printable(channel.name), fmt::format("{:.1f}{}", channel.gbps, channel.measured ? "*" : ""),
               human_bytes(sums[sorted[i]] * bytes), fmt::format("{:.0f} %", 100 * busy(sorted[i]) / seconds)});
  }
  table.cut_first(0);
  std::string text = table.text(kColumns);
  if (is_measured) text += "* measured\n";
  if (sorted.size() > kMostLinks) text += fmt::format("and {} less busy\n", sorted.size() - kMostLinks);
  return text;
}

}  // namespace

std::string plan_text(const Plan& plan, double bytes) {
  const Candidate& best = plan.best(bytes);
  const std::vector<Round> rounds = rounds_of(plan.network, best);
  return head_text(plan, best, rounds, bytes) + "\n" + sizes_text(plan) + "\n" + algorithms_text(plan, bytes) + "\n" +
         rounds_text(plan, rounds, bytes) + "\n" + loads_text(plan, rounds, bytes, best.cost.seconds(bytes));
}

std::string duration_text(double seconds) {
  constexpr std::array<std::pair<double, const char*>, 4> kUnits{{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  for (const auto& [unit, name] : kUnits)
    if (seconds >= unit * 0.9995 || unit == kUnits.back().first) return fmt::format("{:.3g} {}", seconds / unit, name);
  return "";
}

std::string order_text(const Network& network, const Candidate& candidate) {
  const std::vector<std::string> labels = short_labels(network);
  std::string text;
  size_t island = 0, left = candidate.island_sizes.empty() ? candidate.order.size() : candidate.island_sizes[0];
  for (const size_t device : candidate.order) {
    if (left == 0) {
      text += " |";
      left = candidate.island_sizes[++island];
    }
    text += (text.empty() ? "" : " ") + labels[device];
    --left;
  }
  return text;
}

std::string transfers_text(const Network& network, const Round& round) {
  const std::vector<std::string> labels = short_labels(network);
  std::vector<std::pair<size_t, size_t>> left;
  for (const Transfer& transfer : round.transfers)
    if (const std::pair pair(transfer.from, transfer.to); std::ranges::find(left, pair) == left.end())
      left.push_back(pair);
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  for (size_t i = 0; i < left.size();) {
    const auto [from, to] = left[i];
    const auto back = std::ranges::find(left, std::pair(to, from));
    if (back == left.end()) {
      ++i;
      continue;
    }
    add(labels[from] + "<>" + labels[to]);
    left.erase(back);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
  }
  while (!left.empty()) {
    const auto is_end = [&](const auto& pair) {
      return std::ranges::none_of(left, [&](const auto& other) { return other.second == pair.first; });
    };
    auto next = std::ranges::find_if(left, is_end);
    if (next == left.end()) next = left.begin();
    std::string chain = labels[next->first];
    while (next != left.end()) {
      const size_t end = next->second;
      if (characters(chain) + 1 + characters(labels[end]) > kMostChain) {
        add(chain);
        chain = labels[next->first];
      }
      chain += ">" + labels[end];
      left.erase(next);
      next = std::ranges::find(left, end, &std::pair<size_t, size_t>::first);
    }
    add(chain);
  }
  return text;
}

}  // namespace remuda::route
