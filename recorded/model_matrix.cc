#include "recorded/formats.h"
#include "recorded/machine.h"

namespace remuda::recorded {

Result<Inventory> import_model_matrix(const Text& text, const Matrix& matrix) {
  Machine machine = machine_of(matrix, "AMD");
  add_links(matrix, Fabric::none, machine);
  finish(text, "RCCL model matrix", machine.inventory);
  return std::move(machine.inventory);
}

}  // namespace remuda::recorded
