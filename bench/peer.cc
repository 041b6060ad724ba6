#include "bench/peer.h"

#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

#include "base/json.h"

namespace remuda::bench {

Result<std::map<size_t, double>> run_peer(const std::string& command, std::span<const size_t> sizes) {
  const std::string line = fmt::format("{} {} 2>/dev/null", command, fmt::join(sizes, " "));
  const std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(line.c_str(), "r"), ::pclose);
  if (!output) return failed(fmt::format("cannot run {}", command));
  std::map<size_t, double> seconds;
  char text[256];
  while (std::fgets(text, sizeof text, output.get())) {
    const auto json = parse_json(text, command);
    if (json && json->contains("bytes")) seconds[json->at("bytes").get<size_t>()] = json->at("seconds").get<double>();
  }
  if (seconds.empty()) return failed(fmt::format("{} printed no figures", command));
  return seconds;
}

}  // namespace remuda::bench
