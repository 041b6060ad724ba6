#include "topology/json.h"

namespace remuda::topology {

Json to_json(const Matrix& matrix) {
  Json devices = Json::array(), labels = Json::array(), gbps = Json::array(), measured = Json::array();
  for (const Device* device : matrix.devices) devices.push_back(device->id);
  for (const auto& row : matrix.pairs) {
    Json label_row = Json::array(), gbps_row = Json::array(), measured_row = Json::array();
    for (const auto& [label, speed] : row) {
      label_row.push_back(label);
      gbps_row.push_back(speed ? Json(speed->gbps) : Json());
      measured_row.push_back(speed && speed->measured);
    }
    labels.push_back(std::move(label_row));
    gbps.push_back(std::move(gbps_row));
    measured.push_back(std::move(measured_row));
  }
  return {{"devices", devices}, {"matrix", labels}, {"gbps", gbps}, {"measured", measured}};
}

}  // namespace remuda::topology
