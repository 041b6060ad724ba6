#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/local_time.h"
#include "base/table.h"
#include "place/answer.h"

namespace remuda::place {
namespace {

/// "label  rest", with the labels of a block aligned.
std::string line(std::string_view label, std::string_view rest) { return fmt::format("{:<12}{}\n", label, rest); }

std::string joined(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

std::string links_text(const std::vector<Explanation::Pair>& links) {
  std::string text;
  for (const auto& link : links) {
    const std::string speed =
        link.gbps ? fmt::format(" {:.4g} GB/s{}", *link.gbps, link.measured ? " (measured)" : "") : " speed not known";
    text += line(text.empty() ? "links" : "", fmt::format("{} - {}: {}{}", link.a, link.b, link.label, speed));
  }
  return text;
}

std::string ring_text(const Explanation& e) {
  if (!e.ring) return e.devices.size() > 1 ? line("ring", "its speed is not known") : "";
  return line("ring", fmt::format("{:.4g} GB/s at its slowest link, {} to {}: {}", e.ring->gbps, e.ring->a, e.ring->b,
                                  e.ring->reason));
}

std::string places_text(const Explanation& e) {
  std::string text;
  if (!e.numa_nodes.empty())
    text += line("NUMA", fmt::format("node{} {}", e.numa_nodes.size() > 1 ? "s" : "", fmt::join(e.numa_nodes, ", ")));
  if (!e.pcie_roots.empty()) text += line("PCIe", joined(e.pcie_roots));
  return text;
}

std::string left_text(const Explanation& e) {
  if (e.left.empty()) return line("left free", "nothing");
  std::string text = line("left free", joined(e.left));
  const auto set = [&](const char* what, const std::optional<Explanation::Set>& best) {
    if (best) text += line("", fmt::format("{}: {} at {:.4g} GB/s", what, joined(best->devices), best->gbps));
  };
  set("best pair", e.left_pair);
  set("best four", e.left_four);
  return text;
}

std::string shares_text(const Placement& placement) {
  std::string text;
  for (size_t i = 0; i < placement.shares.size(); ++i)
    text += line(i == 0 ? "shares" : "",
                 fmt::format("{}: {:.1f} %", placement.explanation.devices[i], 100 * placement.shares[i]));
  return text.empty() ? "" : text + line("", "by " + placement.explanation.shares_basis);
}

std::string cores_text(const Placement& placement) {
  return placement.cores.empty() ? "" : line("cores", index_ranges(placement.cores) + " of the host");
}

std::string rejected_text(const std::vector<Explanation::Rejected>& rejected) {
  std::string text;
  for (const auto& [device, reason] : rejected)
    text += line(text.empty() ? "rejected" : "", fmt::format("{} {}", device, reason));
  return text;
}

}  // namespace

std::string explanation_text(const Placement& placement) {
  const Explanation& e = placement.explanation;
  std::string text = line("chosen", joined(e.devices)) + ring_text(e) + links_text(e.links) + places_text(e) +
                     shares_text(placement) + cores_text(placement) + left_text(e);
  for (const auto& runner : e.runners_up)
    text += line(&runner == e.runners_up.data() ? "runners-up" : "",
                 fmt::format("{}: {}", joined(runner.devices), runner.lost));
  text += rejected_text(e.rejected);
  text += line("considered", fmt::format("{} set{}{}{}", e.considered, e.considered == 1 ? "" : "s",
                                         e.exhaustive ? ", all there are" : "",
                                         e.one_model ? " of devices of one model (--any-model allows a mix)" : ""));
  for (const std::string& note : e.notes) text += line("note", note);
  return text;
}

std::string refusal_text(const Refusal& refusal) {
  std::string text;
  for (const Blocker& blocker : refusal.blockers) {
    std::string when;
    if (blocker.since_s) when += ", since " + local_time_text(*blocker.since_s);
    if (blocker.until_s) when += ", until " + local_time_text(*blocker.until_s);
    const std::string part = blocker.share < 1 ? fmt::format(" ({:.0f} %)", 100 * blocker.share) : "";
    text +=
        line(text.empty() ? "in the way" : "", fmt::format("{}: {}{}{}", blocker.device, blocker.holder, part, when));
  }
  if (refusal.earliest_s) text += line("earliest", local_time_text(*refusal.earliest_s));
  return text + (refusal.blockers.empty() ? rejected_text(refusal.rejected) : "");
}

}  // namespace remuda::place
