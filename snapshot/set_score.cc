#include "snapshot/set_score.h"

#include <fmt/format.h>
#include <variant>

#include "place/place.h"

namespace remuda::snapshot {

Result<Json> set_score(const Inventory& inventory, const SetQuery& query) {
  if (query.devices.empty() || query.devices.size() > SetQuery::kMost)
    return usage_error(fmt::format("name 1 to {} devices, as in devices=gpu:0,gpu:1", SetQuery::kMost));
  const place::Request request{
      .count = static_cast<int>(query.devices.size()), .any_model = true, .devices = query.devices, .cpu = true};
  REMUDA_ASSIGN(const place::Answer answer, place::place(place::Layout(inventory), request, {}));
  return std::visit([](const auto& one) { return to_json(one); }, answer);
}

}  // namespace remuda::snapshot
