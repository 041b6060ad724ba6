#include "place/where.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "base/text.h"
#include "place/glob.h"
#include "place/where_node.h"

namespace remuda::place {
namespace {

using Kind = WhereNode::Kind;
using Op = WhereNode::Op;

template <typename T>
bool ordered(Op op, const T& has, const T& wanted) {
  switch (op) {
    case Op::less:
      return has < wanted;
    case Op::at_most:
      return has <= wanted;
    case Op::greater:
      return has > wanted;
    case Op::at_least:
      return has >= wanted;
    case Op::unequal:
      return has != wanted;
    default:
      return has == wanted;
  }
}

/// The device's value, in the type of the attribute's values; nothing when it is not a version as required.
std::optional<WhereNode::Value> comparable(AttributeType type, const AttributeValue& value) {
  if (const double* number = std::get_if<double>(&value)) return *number;
  const std::string& text = std::get<std::string>(value);
  if (type != AttributeType::version) return text;
  if (auto version = VersionNumber::parse(text)) return std::move(*version);
  return std::nullopt;
}

bool compare(const WhereNode& node, const WhereNode::Value& has) {
  if (node.op == Op::in) return std::ranges::find(node.values, has) != node.values.end();
  const WhereNode::Value& wanted = node.values.front();
  if (node.op == Op::like) return glob_matches(std::get<std::string>(wanted), std::get<std::string>(has));
  return ordered(node.op, has, wanted);
}

/// True, false, or nothing: not known.
using Truth = std::optional<bool>;

class Test {
 public:
  Test(const Inventory& inventory, const Device& device) : inventory_(inventory), device_(device) {}

  Truth holds(const WhereNode& node) {
    switch (node.kind) {
      case Kind::any:
        return decided_by(true, node.children);
      case Kind::all:
        return decided_by(false, node.children);
      case Kind::negation: {
        const Truth child = holds(node.children.front());
        return child ? Truth(!*child) : child;
      }
      case Kind::comparison:
        return comparison(node);
    }
    return false;
  }

  std::vector<Where::Unknown> unknown;

 private:
  /// `decisive` where one of the nodes has this truth value; an unknown node counts only where none has.
  Truth decided_by(bool decisive, const std::vector<WhereNode>& nodes) {
    Truth all = !decisive;
    for (const WhereNode& node : nodes) {
      const Truth one = holds(node);
      if (one == decisive) return decisive;
      if (!one) all = std::nullopt;
    }
    return all;
  }

  Truth comparison(const WhereNode& node) {
    const Reading<AttributeValue> reading = node.attribute->read(inventory_, device_);
    std::string why = "it is not a version number";
    if (reading.has_value()) {
      if (const auto has = comparable(node.attribute->type, reading.value())) return compare(node, *has);
    } else {
      why = reading.missing().detail;
    }
    if (std::ranges::find(unknown, node.attribute->name, &Where::Unknown::attribute) == unknown.end())
      unknown.push_back({node.attribute->name, why});
    return std::nullopt;
  }

  const Inventory& inventory_;
  const Device& device_;
};

bool asks_for(const WhereNode& node, std::string_view attribute) {
  if (node.kind == Kind::comparison) return attribute == node.attribute->name;
  return std::ranges::any_of(node.children, [&](const WhereNode& child) { return asks_for(child, attribute); });
}

}  // namespace

Result<Where> Where::parse(std::string_view text) {
  if (text.size() > kLongest)
    return usage_error(fmt::format("the condition has {} characters; at most {} are read", text.size(), kLongest));
  REMUDA_ASSIGN(WhereNode root, parse_where(text));
  Where where;
  where.text_ = printable(text);
  where.root_ = std::make_shared<const WhereNode>(std::move(root));
  return where;
}

Where::Verdict Where::test(const Inventory& inventory, const Device& device) const {
  Test test(inventory, device);
  const Truth holds = test.holds(*root_);
  if (holds) return {*holds, {}};
  return {false, std::move(test.unknown)};
}

bool Where::names(std::string_view attribute) const { return asks_for(*root_, attribute); }

}  // namespace remuda::place
