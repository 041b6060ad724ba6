// The XML in what a program printed, and what stands around it: nvidia-smi prints warnings before its report, or behind
// it, and of a GPU that it cannot reach nothing else. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace remuda::recorded {

struct AroundXml {
  std::string xml;                 ///< the first document, as a parser can take it: see below
  std::vector<std::string> lines;  ///< that are no XML, fit for a terminal; blank ones and comments are left out
  std::string comment;             ///< the first line that begins with '#', without "# source: "
  size_t further = 0;              ///< documents that follow the first
};

/// Nothing where there is no XML. Bytes that are not UTF-8, and control characters, become marks, and the name of a
/// process is text whatever stands in it: programs print it as it is.
std::optional<AroundXml> find_xml(std::string_view text);

}  // namespace remuda::recorded
