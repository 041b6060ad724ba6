// GuardedChild: a forked process for work that may hang or crash, which can be killed without waiting for it.
//
// Both sides have one socket. The child keeps only that of its parent's descriptors; standard input and output are
// /dev/null, signal handlers are the default ones, no core is written. It has a process group of its own, and dies with
// the thread that made it (PR_SET_PDEATHSIG). Make it before the process has threads, or from the thread that lives
// longest.
//
//   REMUDA_ASSIGN(GuardedChild child, GuardedChild::start([](int socket) { serve(socket); }));
//   child.send("?");
//   std::string line;
//   if (child.receive(5, line) != GuardedChild::Received::line) child.end();
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace remuda::process {

/// One thread. In a process forked from its owner it does nothing.
class GuardedChild {
 public:
  /// `work` runs in the child with its end of the socket; the child ends when it returns.
  static Result<GuardedChild> start(const std::function<void(int socket)>& work);

  GuardedChild(GuardedChild&& other) noexcept;
  GuardedChild& operator=(GuardedChild&& other) noexcept;
  ~GuardedChild() { end(); }

  pid_t pid() const { return pid_; }

  enum class Received {
    line,
    nothing,  ///< within the time given
    end,      ///< the child has ended, or sent more than kLongestText
  };
  /// The child's next line, without its newline; waits at most `seconds`.
  Received receive(double seconds, std::string& line);
  /// All that the child sends until its end; waits at most `seconds`. Returns `end` when it is complete.
  Received receive_all(double seconds, std::string& text);
  /// False when the child has ended.
  bool send(std::string_view bytes);

  /// Whether it still holds its end of the socket.
  bool is_there() const;

  /// Kills the child and its process group, and waits for at most kMoment seconds: one that is in a driver's call may
  /// take long to die. False when it has not ended yet; then call it again. Leaves no zombie once it has returned true.
  bool end();
  /// After end(): how a child ended that ended by itself: "crashed (signal 11, Segmentation fault)".
  const std::string& fate() const { return fate_; }

  static constexpr double kMoment = 0.25;
  static constexpr size_t kLongestText = 64 << 20;

 private:
  GuardedChild(pid_t pid, Fd socket);
  Received receive_some(double deadline_s);
  bool reap();

  pid_t pid_ = -1;  ///< -1: it has ended
  pid_t owner_ = -1;
  Fd socket_;
  std::string received_, fate_;
};

/// The guarded children of this process: its own helpers, which belong to no job.
std::vector<int> guarded_children();

}  // namespace remuda::process
