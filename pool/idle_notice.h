// IdleNotice: how far the steps of the administrator's policy against idle devices have come with a running job. Plain
// data.
#pragma once

#include <string>

#include "device/words.h"

namespace remuda::pool {

enum class IdleStep {
  none,
  warned,     ///< its user was told
  signalled,  ///< and it was to write a checkpoint
  released,   ///< and it was asked to end
};
}  // namespace remuda::pool

template <>
struct remuda::Words<remuda::pool::IdleStep> {
  static constexpr std::array table{
      std::pair{pool::IdleStep::none, "none"}, std::pair{pool::IdleStep::warned, "warned"},
      std::pair{pool::IdleStep::signalled, "signalled"}, std::pair{pool::IdleStep::released, "released"}};
};

namespace remuda::pool {

struct IdleNotice {
  IdleStep step = IdleStep::none;
  double at_s = 0;   ///< when that was, in seconds since 1970
  int signal = 0;    ///< for a job that does not say by which one it writes a checkpoint
  std::string text;  ///< a sentence: what was seen, and what comes next

  static constexpr const char* kName = "idle_notice";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("step", self.step, "how far it has come: warned, signalled or released");
    visit("at_s", self.at_s, "when that was, in seconds since 1970");
    visit("signal", self.signal, "number of the signal for a checkpoint, unless the job has named one");
    visit("text", self.text, "what was seen, and what comes next");
  }
  bool operator==(const IdleNotice&) const = default;
};

}  // namespace remuda::pool
