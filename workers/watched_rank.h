// WatchedRank: one running rank and the three streams by which its launcher follows it: events, output, its end.
#pragma once

#include <functional>
#include <poll.h>
#include <string>
#include <vector>

#include "base/json.h"
#include "process/child.h"
#include "process/line_splitter.h"
#include "workers/root_cause.h"

namespace remuda::workers {

/// A rank to start: its device's id, for messages, and its program.
struct RankSpec {
  std::string device;
  process::ProcessSpec process;
  std::string input;     ///< what it reads on stdin
  bool elastic = false;  ///< it is told on REMUDA_MEMBERS_FD when other ranks are lost
};

/// Called from supervise(), in its thread.
struct RankListener {
  std::function<void(int rank, const Json& event)> on_event;
  /// A line, not empty, that the rank wrote on stdout or stderr, or a note about what it sent; fit for a terminal.
  std::function<void(int rank, const std::string& line)> on_line;
  /// How long the ranks' current step may take: after a signal they get this time to end it, before `stop_s` begins.
  std::function<double()> step_s = [] { return 0.0; };
  /// A signal was forwarded: the ranks have this long to stop together.
  std::function<void(int signal, double within_s)> on_stop = [](int, double) {};
  /// Some were lost: these ranks are left, and go on.
  std::function<void(const std::vector<int>& left, const std::vector<Failure>& lost)> on_loss = [](const auto&,
                                                                                                   const auto&) {};
};

class WatchedRank {
 public:
  /// Starts the rank with REMUDA_EVENTS_FD set to the write end of a new pipe. `listener` must outlive it.
  static Result<WatchedRank> start(int rank, RankSpec spec, const RankListener& listener);

  const RankFacts& facts() const { return facts_; }
  bool running() const { return !facts_.exit; }
  /// When it last sent an event; before the first event, when it was started.
  double last_event_s() const { return last_event_s_; }

  /// Whether what it last said is that it makes an output, which no other rank waits for.
  bool makes_output() const { return running() && makes_output_; }

  /// Adds the descriptors to poll; none once it has ended.
  void add_to(std::vector<pollfd>& polled) const;
  /// Reads what has arrived, and records the rank's end if it has ended. Never blocks.
  void read(double now_s);

  /// Sends a signal; from then on the rank's death is not counted as a failure of its own.
  void signal(int number);
  /// Tells an elastic rank that waits who is left: it goes on, and what it has lost, or done, is so no more.
  void tell(const Json& members);
  /// An elastic rank that waits, now or later, hears that it does not go on, and ends.
  void dismiss() { members_.reset(); }
  /// Records an error that the rank cannot report itself, unless it has one already.
  void blame(Error error, double now_s);

 private:
  WatchedRank(int rank, std::string device, process::ChildProcess process, Fd events, Fd members,
              const RankListener& listener);
  void take_event(std::string_view line, bool dropped);
  void take_left(const Json& event);
  void take_output(std::string_view line, bool dropped);
  void complain(const std::string& what);

  RankFacts facts_;
  process::ChildProcess process_;
  Fd events_, members_;
  const RankListener* listener_;
  process::LineSplitter event_lines_, output_lines_;
  double last_event_s_, now_s_;
  bool output_open_ = true;
  bool makes_output_ = false;
  bool complained_ = false;
};

}  // namespace remuda::workers
