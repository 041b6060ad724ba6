#include "cli/watch/alert_commands.h"

#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <sys/wait.h>
#include <utility>

namespace remuda::cli {

AlertCommands::~AlertCommands() {
  if (pid_ != 0) kill();
}

/// With all that it has started, as it leads a group of its own.
void AlertCommands::kill() {
  ::kill(-pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, 0), nullptr, 0);
}

void AlertCommands::run(std::string command, process::Environment environment) {
  if (waiting_.size() >= kMostWaiting) waiting_.pop_front();
  waiting_.push_back({.argv = {"/bin/sh", "-c", std::move(command)}, .environment = std::move(environment)});
}

void AlertCommands::reap(double now_s) {
  if (pid_ == 0) return;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != 0) {
    pid_ = 0;
    if (status != 0) fmt::print(stderr, "{}: the command of --on-alert has failed\n", speaker_);
  } else if (now_s - began_s_ > kLongest_s) {
    kill();
    fmt::print(stderr, "{}: the command of --on-alert took more than {:.0f} s and was killed\n", speaker_, kLongest_s);
  }
}

void AlertCommands::tend(double now_s) {
  reap(now_s);
  while (pid_ == 0 && !waiting_.empty()) {
    const auto started = process::spawn(waiting_.front());
    waiting_.pop_front();
    if (started) {
      pid_ = *started;
      began_s_ = now_s;
    } else {
      fmt::print(stderr, "{}: --on-alert: {}\n", speaker_, started.error().sentence);
    }
  }
}

}  // namespace remuda::cli
