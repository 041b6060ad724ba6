// XML as a tree of elements. Bounded: at most 64 deep, 200,000 elements, 64 attributes on each; no entities of its own
// and no declarations inside, so that a small file cannot grow. Nothing is fetched. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace remuda::recorded {

struct Element {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::string text;  ///< its own, at most 4096 bytes
  std::vector<Element> children;

  /// The attribute's value; empty when there is none.
  std::string_view attribute(std::string_view name) const;
  /// The first child of that name, or the first such one along a path ("pci/pci_gpu_link_info"); null when there is
  /// none.
  const Element* child(std::string_view path) const;
};

/// The root of the first document in `text`; what follows it is not read. A usage error that starts with `where` and
/// names the line otherwise.
Result<Element> read_xml(std::string_view text, std::string_view where);

}  // namespace remuda::recorded
