// What is called where computing waits for other ranks, so that their time is not taken for this rank's.
#pragma once

#include <functional>

namespace remuda::train {

struct WaitHooks {
  std::function<void()> before_wait = [] {};                   ///< called before each wait for other ranks,
  std::function<void(double seconds)> waited = [](double) {};  ///< and after it
};

}  // namespace remuda::train
