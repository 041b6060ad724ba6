// The matrix as JSON, for `remuda topo --json`.
#pragma once

#include "base/json.h"
#include "topology/matrix.h"

namespace remuda::topology {

/// {"devices": [id], "matrix": [[label]], "gbps": [[number or null]], "measured": [[bool]]}, rows and columns in the
/// order of the devices. On the diagonal "X", null and false.
Json to_json(const Matrix& matrix);

}  // namespace remuda::topology
