#include "base/version.h"

namespace remuda {

const char* version() { return REMUDA_VERSION; }

}  // namespace remuda
