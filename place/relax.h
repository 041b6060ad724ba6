// Relaxing: the least that a request would have to give up, in one respect, so that it can be met. Pure.
// What "met" means is up to the caller: place::fits(), or a pass of the scheduler.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "place/request.h"

namespace remuda::place {

struct Relaxation {
  std::string change;  ///< in the words of the command line: "with -n 2", "with --mem 10GiB", "without --model"
  Request request;     ///< what remains of it
};

/// One for each respect in which giving up something suffices: the number of devices, the memory of each, what joins
/// them, the kinds of device, the part of each, and cores and memory of the host. `is_met` is asked some 50 times at
/// most; whoever asks for less must not be refused by it where more is met.
std::vector<Relaxation> relaxations(const Request& request, const std::function<bool(const Request&)>& is_met);

}  // namespace remuda::place
