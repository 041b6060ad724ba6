// The table of assumed link speeds and latencies: link_speeds.json, which travels inside the library. Each figure has
// source and date.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace remuda::topology {

/// One line of the table: a figure and when it holds. A condition that is not set holds always.
struct LinkFigure {
  std::string of;  ///< nvlink, xgmi, pcie, shared_memory or host_memory
  std::optional<int> version;
  std::optional<std::string> chip, path;
  std::optional<bool> near;
  /// 10^9 bytes/s in one direction: of one link, of 16 lanes of PCIe generation 4, of a pair of CPUs, of all that a
  /// NUMA node's memory takes in and gives out again.
  double gbps = 0;
  std::string date, source;
};

/// How long the smallest transfer takes.
struct LatencyFigure {
  std::string of;  ///< nvlink, xgmi, pcie, shared_memory or staged
  double us = 0;
  std::string date, source;
};

/// What is known of a link; empty and 0 for what is not.
struct LinkTraits {
  std::string_view of;
  int version = 0;
  std::string_view chip, other_chip;  ///< architecture and compute capability of one end
  std::string_view path;
  bool near = false;  ///< both ends belong to one NUMA node, or print the same CPUs
};

class LinkSpeeds {
 public:
  /// An error names the line that is wrong. Every `of` must have a line without conditions, and every latency a line.
  static Result<LinkSpeeds> parse(std::string_view json);

  /// The first figure whose conditions all hold. `traits.of` must be one of the five.
  double gbps(const LinkTraits& traits) const;
  double latency_us(std::string_view of) const;
  const std::vector<LinkFigure>& figures() const { return figures_; }
  const std::vector<LatencyFigure>& latencies() const { return latencies_; }

 private:
  std::vector<LinkFigure> figures_;
  std::vector<LatencyFigure> latencies_;
};

/// The text of link_speeds.json.
extern const char* const kLinkSpeedsJson;
/// The same, parsed; any thread may call this.
const LinkSpeeds& link_speeds();

}  // namespace remuda::topology
