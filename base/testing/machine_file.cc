#include "base/testing/machine_file.h"

namespace remuda {

std::string machine_file(std::string_view name) {
  return std::string(REMUDA_MACHINES "/") + std::string(name) + ".json";
}

}  // namespace remuda
