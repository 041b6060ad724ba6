#include "base/result.h"

#include <cstring>

namespace remuda {

int exit_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return 2;
    case ErrorKind::never:
      return 3;
    case ErrorKind::not_now:
      return 4;
    case ErrorKind::unavailable:
      return 5;
    default:
      return 1;
  }
}

std::string errno_text(int error_number) {
  char buffer[128];
  return strerror_r(error_number, buffer, sizeof buffer);
}

}  // namespace remuda
