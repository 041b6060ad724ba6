#include "base/result.h"

#include <cstring>

namespace remuda {

int exit_status(ErrorKind kind) { return kind == ErrorKind::usage ? 2 : 1; }

std::string errno_text(int error_number) {
  char buffer[128];
  return strerror_r(error_number, buffer, sizeof buffer);
}

}  // namespace remuda
