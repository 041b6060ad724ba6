// Tee: what a job writes, to the terminal and to its log at once.
#pragma once

#include <array>
#include <thread>

#include "base/file.h"
#include "base/result.h"

namespace remuda::run {

/// A thread of its own copies until both streams have ended or the Tee goes. Where the terminal's side is closed, the
/// log goes on, and the other way round: the job never hears of it.
class Tee {
 public:
  static Result<Tee> open(Fd log);
  Tee(Tee&& other) noexcept = default;
  Tee& operator=(Tee&&) = delete;
  /// Copies what is there still, and ends.
  ~Tee();

  /// For the job, in place of its stdout and stderr.
  int out() const { return out_.get(); }
  int err() const { return err_.get(); }

 private:
  Tee() = default;
  Fd out_, err_, stop_;  ///< write ends; the thread ends when the last of `stop_` is closed
  std::thread copier_;
};

}  // namespace remuda::run
