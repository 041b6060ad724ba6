// AlertCommands: runs a command of the user's for each alert, one at a time, without waiting for it.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "process/spawn.h"

namespace remuda::cli {

/// One thread, which lives as long as the commands may run.
class AlertCommands {
 public:
  static constexpr double kLongest_s = 30;  ///< then it is killed
  static constexpr size_t kMostWaiting = 100;

  /// `speaker`: begins the lines on stderr: "remuda watch".
  explicit AlertCommands(std::string speaker) : speaker_(std::move(speaker)) {}
  /// A command that runs is killed.
  ~AlertCommands();
  AlertCommands(const AlertCommands&) = delete;

  /// Runs it by /bin/sh once those before it are done; the oldest that wait are left out where too many do.
  void run(std::string command, process::Environment environment);
  /// Starts what is due and ends what has taken too long. To be called about once a second; `now_s` is a steady time.
  void tend(double now_s);
  bool is_idle() const { return pid_ == 0 && waiting_.empty(); }

 private:
  void reap(double now_s);
  void kill();

  const std::string speaker_;
  std::deque<process::ProcessSpec> waiting_;
  int pid_ = 0;  ///< that runs; 0: none
  double began_s_ = 0;
};

}  // namespace remuda::cli
