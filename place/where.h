// Where: a condition on devices, written by a person: `memory >= 40Gi && productName =~ "*A100*"`.
//
//   condition   any of: a || b, a && b, !a, (a), NAME op VALUE, NAME in [VALUE, ...]
//   op          == != < <= > >= for numbers, amounts and versions; == != =~ for texts, =~ with * and ?, any case
//   VALUE       "text", 'text', 3, 40Gi, 8.0
//   NAME        one of place/where_attributes.h
//
// A subset of CEL, the language of Kubernetes' device selectors, except for =~ and for names without a prefix.
//
// Example:
//   const Where where = Where::parse("memory >= 40Gi && !(numaNode == 1)").value();
//   const bool suits = where.test(inventory, inventory.devices[0]).holds;
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"

namespace remuda::place {

struct WhereNode;

class Where {
 public:
  static constexpr size_t kLongest = 4096;  ///< characters
  static constexpr int kDeepest = 32;       ///< nested parentheses and negations

  /// A usage error names the position of the fault, counted from 1.
  static Result<Where> parse(std::string_view text);

  struct Unknown {
    std::string attribute, why;
    bool operator==(const Unknown&) const = default;
  };
  struct Verdict {
    bool holds = false;
    std::vector<Unknown> unknown;  ///< where it is not known whether it holds: the readings that are missing
  };
  /// A comparison with a missing reading is neither true nor false, and neither is what depends on it: `!(memory <
  /// 40Gi)` does not hold for a device of unknown memory.
  Verdict test(const Inventory& inventory, const Device& device) const;

  /// Whether the condition asks for this attribute.
  bool names(std::string_view attribute) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::shared_ptr<const WhereNode> root_;
};

}  // namespace remuda::place
