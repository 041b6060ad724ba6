// The tree of a parsed condition. Internal to where.cc and where_parser.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/version_number.h"
#include "place/where_attributes.h"

namespace remuda::place {

struct WhereNode {
  enum class Kind { any, all, negation, comparison };
  enum class Op { equal, unequal, less, at_most, greater, at_least, like, in };
  using Value = std::variant<double, std::string, VersionNumber>;

  Kind kind = Kind::comparison;
  std::vector<WhereNode> children;  ///< of any, all (two or more) and negation (one)

  const Attribute* attribute = nullptr;  ///< of a comparison, with what follows
  Op op = Op::equal;
  std::vector<Value> values;  ///< one, or those of a list
};

Result<WhereNode> parse_where(std::string_view text);

}  // namespace remuda::place
