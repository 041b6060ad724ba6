#include "topology/bandwidth_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "base/check.h"
#include "base/json.h"

namespace remuda::topology {
namespace {

constexpr std::array<std::string_view, 5> kKinds{"nvlink", "xgmi", "pcie", "shared_memory", "host_memory"};
constexpr std::array<std::string_view, 5> kLatencies{"nvlink", "xgmi", "pcie", "shared_memory", "staged"};

template <typename T>
void read(const Json& line, const char* key, std::optional<T>& value) {
  if (const auto found = line.find(key); found != line.end()) value = found->get<T>();
}

Result<LinkFigure> parse_figure(const Json& line, size_t number) {
  LinkFigure figure;
  try {
    figure = {.of = line.at("of"), .gbps = line.at("gbps"), .date = line.at("date"), .source = line.at("source")};
    read(line, "version", figure.version);
    read(line, "chip", figure.chip);
    read(line, "path", figure.path);
    read(line, "near", figure.near);
  } catch (const Json::exception& error) {
    return usage_error(fmt::format("link speeds: figure {}: {}", number, error.what()));
  }
  if (std::find(kKinds.begin(), kKinds.end(), figure.of) == kKinds.end())
    return usage_error(fmt::format("link speeds: figure {}: \"{}\" is no kind of link", number, figure.of));
  if (!std::isfinite(figure.gbps) || figure.gbps <= 0)
    return usage_error(fmt::format("link speeds: figure {}: gbps must be above 0", number));
  if (figure.date.empty() || figure.source.empty())
    return usage_error(fmt::format("link speeds: figure {}: source and date must be given", number));
  return figure;
}

Result<LatencyFigure> parse_latency(const Json& line, size_t number) {
  LatencyFigure figure;
  try {
    figure = {.of = line.at("of"), .us = line.at("us"), .date = line.at("date"), .source = line.at("source")};
  } catch (const Json::exception& error) {
    return usage_error(fmt::format("link speeds: latency {}: {}", number, error.what()));
  }
  if (std::find(kLatencies.begin(), kLatencies.end(), figure.of) == kLatencies.end())
    return usage_error(fmt::format("link speeds: latency {}: \"{}\" is no kind of transfer", number, figure.of));
  if (!std::isfinite(figure.us) || figure.us <= 0)
    return usage_error(fmt::format("link speeds: latency {}: us must be above 0", number));
  if (figure.date.empty() || figure.source.empty())
    return usage_error(fmt::format("link speeds: latency {}: source and date must be given", number));
  return figure;
}

bool is_general(const LinkFigure& figure) { return !figure.version && !figure.chip && !figure.path && !figure.near; }

bool holds(const LinkFigure& figure, const LinkTraits& traits) {
  return figure.of == traits.of && (!figure.version || *figure.version == traits.version) &&
         (!figure.chip || *figure.chip == traits.chip || *figure.chip == traits.other_chip) &&
         (!figure.path || *figure.path == traits.path) && (!figure.near || *figure.near == traits.near);
}

}  // namespace

Result<LinkSpeeds> LinkSpeeds::parse(std::string_view json) {
  REMUDA_ASSIGN(const Json document, parse_json(json, "link speeds"));
  const auto lines = document.find("figures"), latencies = document.find("latencies");
  if (lines == document.end() || !lines->is_array()) return usage_error("link speeds: figures must be a list");
  if (latencies == document.end() || !latencies->is_array())
    return usage_error("link speeds: latencies must be a list");
  LinkSpeeds speeds;
  for (const Json& line : *lines) {
    REMUDA_ASSIGN(LinkFigure figure, parse_figure(line, speeds.figures_.size() + 1));
    speeds.figures_.push_back(std::move(figure));
  }
  for (const std::string_view kind : kKinds)
    if (std::none_of(speeds.figures_.begin(), speeds.figures_.end(),
                     [&](const LinkFigure& figure) { return figure.of == kind && is_general(figure); }))
      return usage_error(fmt::format("link speeds: {} has no figure that holds always", kind));
  for (const Json& line : *latencies) {
    REMUDA_ASSIGN(LatencyFigure figure, parse_latency(line, speeds.latencies_.size() + 1));
    speeds.latencies_.push_back(std::move(figure));
  }
  for (const std::string_view kind : kLatencies)
    if (std::ranges::count(speeds.latencies_, kind, &LatencyFigure::of) != 1)
      return usage_error(fmt::format("link speeds: {} must have one latency", kind));
  return speeds;
}

double LinkSpeeds::gbps(const LinkTraits& traits) const {
  const auto found =
      std::find_if(figures_.begin(), figures_.end(), [&](const LinkFigure& figure) { return holds(figure, traits); });
  REMUDA_CHECK(found != figures_.end(), "every kind of link has a figure that holds always");
  return found->gbps;
}

double LinkSpeeds::latency_us(std::string_view of) const {
  const auto found = std::ranges::find(latencies_, of, &LatencyFigure::of);
  REMUDA_CHECK(found != latencies_.end(), "every kind of transfer has a latency");
  return found->us;
}

const LinkSpeeds& link_speeds() {
  static const LinkSpeeds speeds = [] {
    auto parsed = LinkSpeeds::parse(kLinkSpeedsJson);
    REMUDA_CHECK(parsed.has_value(), "link_speeds.json is part of the program and a test reads it");
    return *std::move(parsed);
  }();
  return speeds;
}

}  // namespace remuda::topology
