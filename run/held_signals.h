// HeldSignals: what asks a front to end, held back so that it can be handed on to its keeper.
#pragma once

#include <optional>

#include "run/message.h"

namespace remuda::run {

/// For as long as it lives; belongs to a process of one thread.
class HeldSignals {
 public:
  HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  ~HeldSignals();

  /// Readable once a signal came.
  int fd() const { return fd_.get(); }
  std::optional<SignalNews> next();
  /// The signals that were held back before.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
  Fd fd_;
};

}  // namespace remuda::run
