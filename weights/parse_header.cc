#include "weights/parse_header.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "base/characters.h"
#include "base/json.h"
#include "base/text.h"
#include "weights/header_events.h"

namespace remuda::weights {
namespace {

std::string quoted(const TensorInfo& tensor) {
  constexpr size_t kMost = 80;
  return "'" + shortened(printable(tensor.name), kMost) + "'";
}

Result<void> check_size(const TensorInfo& tensor, uint64_t data_bytes) {
  if (tensor.begin > tensor.end || tensor.end > data_bytes)
    return usage_error(fmt::format("tensor {} stands at bytes {} to {}, but there are {}", quoted(tensor), tensor.begin,
                                   tensor.end, data_bytes));
  const auto bytes = bytes_needed(tensor);
  if (bytes != tensor.bytes())
    return usage_error(fmt::format("tensor {} has {} bytes, but {} of shape {} needs {}", quoted(tensor),
                                   tensor.bytes(), name_of(tensor.type), shape_text(tensor.shape),
                                   bytes ? std::to_string(*bytes) : "more than there can be"));
  return {};
}

/// For tensors in the order of their bytes.
Result<void> check_places(const std::vector<TensorInfo>& tensors, uint64_t data_bytes) {
  uint64_t end = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].begin < end)
      return usage_error(fmt::format("tensors {} and {} overlap", quoted(tensors[i - 1]), quoted(tensors[i])));
    if (tensors[i].begin > end)
      return usage_error(
          fmt::format("{} bytes before tensor {} are of no tensor", tensors[i].begin - end, quoted(tensors[i])));
    end = tensors[i].end;
  }
  if (end != data_bytes) return usage_error(fmt::format("its last {} bytes are of no tensor", data_bytes - end));
  return {};
}

}  // namespace

Result<Header> parse_header(std::string_view text, uint64_t data_bytes) {
  HeaderEvents events;
  if (!parse_json(text, events)) return usage_error(events.wrong());
  auto& tensors = events.header.tensors;
  for (const TensorInfo& tensor : tensors) REMUDA_TRY(check_size(tensor, data_bytes));
  const auto place = [](const TensorInfo& tensor) { return std::tie(tensor.begin, tensor.end, tensor.name); };
  std::ranges::sort(tensors, {}, place);
  REMUDA_TRY(check_places(tensors, data_bytes));
  return std::move(events.header);
}

}  // namespace remuda::weights
