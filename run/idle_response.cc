#include "run/idle_response.h"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "process/status.h"
#include "process/tree.h"
#include "run/job_output.h"

namespace remuda::run {

int signal_handlers(const std::vector<process::ProcessId>& processes, int signal) {
  int sent = 0;
  for (const process::ProcessId& one : processes)
    if (process::handles(one.pid, signal) && process::send_signal(one, signal)) ++sent;
  return sent;
}

/// A log that cannot be written keeps the job's own words, too, and the terminal has this. It may be a pipe that is
/// full, and nobody waits for its reader.
void IdleResponse::say(const std::string& text) {
  link_.send(Message::Kind::note, job_, text);
  const auto log = open_log(spec_, job_);
  if (!log || !*log) return;
  ::fcntl(log->get(), F_SETFL, O_WRONLY | O_APPEND | O_NONBLOCK);
  (void)write_all(log->get(), fmt::format("remuda: {}\n", text), "the log");
}

void IdleResponse::take(const pool::IdleNotice& notice,
                        const std::function<std::vector<process::ProcessId>()>& members) {
  if (notice == seen_) return;
  const pool::IdleStep before = std::exchange(seen_, notice).step;
  if (notice.step == pool::IdleStep::none) {
    if (before != pool::IdleStep::none) say("its devices are in use again, and nothing is done about it");
    return;
  }
  say(notice.text);
  if (notice.step != pool::IdleStep::signalled) return;
  const int signal = spec_.checkpoint_signal > 0 ? spec_.checkpoint_signal : notice.signal;
  const int sent = signal_handlers(members(), signal);
  const char* const name = ::sigabbrev_np(signal);
  say(fmt::format(
      "{} to write a checkpoint: {}", name ? name : std::to_string(signal),
      sent > 0 ? "sent to " + counted(sent, "process") : "not sent, as no process of the job has a handler for it"));
}

}  // namespace remuda::run
