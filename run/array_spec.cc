#include "run/array_spec.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>

#include "base/number.h"
#include "base/text.h"

namespace remuda::run {
namespace {

/// Digits and nothing else, at most `highest`.
std::optional<int> number(std::string_view text, int highest) {
  const auto value = text.starts_with('-') ? std::nullopt : parse_number<int>(text);
  return value && *value <= highest ? value : std::nullopt;
}

struct Range {
  int first, last, step;
};

/// "7", "0-9" or "0-9:3".
std::optional<Range> parse_range(std::string_view text) {
  const size_t colon = text.find(':'), dash = text.find('-');
  const auto step =
      colon == std::string_view::npos ? std::optional(1) : number(text.substr(colon + 1), ArraySpec::kHighestIndex);
  const std::string_view span = text.substr(0, colon);
  const auto first = number(span.substr(0, dash), ArraySpec::kHighestIndex);
  const auto last = dash < span.size() ? number(span.substr(dash + 1), ArraySpec::kHighestIndex) : first;
  const bool is_single = dash == std::string_view::npos;
  if (!step || *step == 0 || !first || !last || *first > *last || (is_single && colon != std::string_view::npos))
    return std::nullopt;
  return Range{*first, *last, *step};
}

}  // namespace

Result<ArraySpec> parse_array(const std::string& text) {
  const auto refuse = [&] {
    return usage_error(fmt::format("--array: '{}' is no list of indices; write 0-9, 1,3,5 or 0-9%2", printable(text)));
  };
  const size_t percent = text.find('%');
  ArraySpec spec{.text = text, .indices = {}, .at_once = 0};
  if (percent != std::string::npos) {
    spec.at_once = number(std::string_view(text).substr(percent + 1), ArraySpec::kMostIndices).value_or(0);
    if (spec.at_once == 0) return refuse();
  }
  std::set<int> indices;
  for (const std::string& part : split(std::string_view(text).substr(0, percent), ',')) {
    const auto range = parse_range(part);
    if (!range) return refuse();
    for (int64_t index = range->first; index <= range->last; index += range->step) {
      indices.insert(static_cast<int>(index));
      if (indices.size() > ArraySpec::kMostIndices)
        return usage_error(
            fmt::format("--array: '{}' has more than {} indices", printable(text), ArraySpec::kMostIndices));
    }
  }
  spec.indices.assign(indices.begin(), indices.end());
  return spec;
}

}  // namespace remuda::run
