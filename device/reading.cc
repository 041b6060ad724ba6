#include "device/reading.h"

namespace remuda {

const char* to_string(MissingReason reason) {
  switch (reason) {
    case MissingReason::unsupported:
      return "unsupported";
    case MissingReason::denied:
      return "denied";
    case MissingReason::lost:
      return "lost";
    case MissingReason::stale:
      return "stale";
    case MissingReason::no_driver:
      return "no_driver";
  }
  return "unsupported";
}

}  // namespace remuda
