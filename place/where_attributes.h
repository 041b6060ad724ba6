// Attributes: the properties of a device that --where may use, named as in Kubernetes' dynamic resource allocation.
#pragma once

#include <span>
#include <string>
#include <variant>

#include "device/inventory.h"

namespace remuda::place {

enum class AttributeType {
  text,     ///< compared as a whole, or with =~
  number,   ///< 4
  amount,   ///< bytes: 40Gi
  version,  ///< 8.0, 580.65.06; newer is greater
};

/// A number for number and amount, a text for text and version.
using AttributeValue = std::variant<double, std::string>;

struct Attribute {
  const char* name;
  AttributeType type;
  const char* meaning;
  Reading<AttributeValue> (*read)(const Inventory&, const Device&);
};

/// All of them, in the order of the documentation.
std::span<const Attribute> attributes();
/// Nothing when there is none of that name.
const Attribute* find_attribute(std::string_view name);

}  // namespace remuda::place
