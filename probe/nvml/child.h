// Child: a forked process that does work which may hang or crash, and can be killed without waiting for it.
//
// Both sides speak over one socket, a line at a time. The child has that socket and nothing else of its parent's: other
// descriptors are closed, standard input and output lead nowhere, signal handlers are the default ones. It dies with
// the thread that made it (PR_SET_PDEATHSIG). Make it before the process has threads, or from the one that lives
// longest.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>

#include "base/file.h"
#include "base/result.h"

namespace remuda::probe::nvml {

class Child {
 public:
  /// `work` runs in the child with its end of the socket; the child ends when it returns.
  static Result<Child> start(const std::function<void(int socket)>& work);

  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child() { end(); }

  enum class Heard { line, silence, end };
  /// The next line of the child, without its end, waiting at most so long. `end`: it has gone, or wrote a line longer
  /// than kLongestLine.
  Heard hear(double seconds, std::string& line);
  /// False when the child has gone.
  bool tell(std::string_view bytes);

  /// Whether it still holds its end of the socket.
  bool is_there() const;

  /// Kills the child and waits for at most kMoment seconds: one that sits in a driver's call may take long to die.
  /// False when it is not gone yet; to be called again. Never leaves a zombie once it returned true.
  bool end();
  /// After end(): what became of a child that ended by itself: "crashed (signal 11, Segmentation fault)".
  const std::string& fate() const { return fate_; }

  static constexpr double kMoment = 0.25;
  static constexpr size_t kLongestLine = 64 << 20;

 private:
  Child(pid_t pid, Fd socket) : pid_(pid), socket_(std::move(socket)) {}
  bool reap();

  pid_t pid_ = -1;  ///< -1 = gone
  Fd socket_;
  std::string heard_, fate_;
};

}  // namespace remuda::probe::nvml
