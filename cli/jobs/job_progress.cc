#include "cli/jobs/job_progress.h"

#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "base/text.h"
#include "cli/status_line.h"

namespace remuda::cli {
namespace {

/// What a user sees of a job on stderr. Where the job starts at once and ends well: at a terminal its devices,
/// elsewhere nothing.
class Progress {
 public:
  Progress(bool quiet, std::string how_to_end)
      : quiet_(quiet),
        how_to_end_(std::move(how_to_end)),
        mode_(StatusLine::mode_of_stderr(quiet)),
        line_(std::make_unique<StatusLine>(mode_, STDERR_FILENO, steady_clock())) {}

  void operator()(const run::Message& message) {
    switch (message.kind) {
      case run::Message::Kind::waiting:
        waited_ = true;
        line_->update(fmt::format("job {} waits{}{}", message.job, message.text.empty() ? "" : ": ", message.text), -1);
        break;
      case run::Message::Kind::started:
        print_start(message);
        clear();
        break;
      case run::Message::Kind::progress:
        if (mode_ == StatusLine::Mode::bar) line_->update(message.text, message.status / 100.0);
        break;
      case run::Message::Kind::note:
        line_->print(fmt::format("remuda: job {}: {}", message.job, message.text));
        break;
      case run::Message::Kind::ended:
        clear();
        if (!message.text.empty() && !(quiet_ && message.status == 0)) print_end(message);
        break;
    }
  }

 private:
  void print_start(const run::Message& message) {
    const std::string end = how_to_end_.empty() ? "" : "; " + how_to_end_;
    if (waited_)
      line_->print(fmt::format("remuda: job {} starts on {}{}", message.job, message.text, end));
    else if (mode_ == StatusLine::Mode::bar && !message.text.empty() && message.text != started_)
      line_->print(fmt::format("remuda: job {}: {}{}", message.job, message.text, end));
    started_ = message.text;
  }
  /// Clears the line, as the job uses the terminal from here on.
  void clear() {
    waited_ = false;
    line_ = std::make_unique<StatusLine>(mode_, STDERR_FILENO, steady_clock());
  }
  static void print_end(const run::Message& message) {
    const std::string who = message.job > 0 ? fmt::format("job {}: ", message.job) : "";
    fmt::print(stderr, "remuda: {}{}\n", who, printable(message.text));
  }

  const bool quiet_;
  const std::string how_to_end_;  ///< for people
  std::string started_;           ///< the devices that were printed last
  const StatusLine::Mode mode_;
  std::unique_ptr<StatusLine> line_;
  bool waited_ = false;
};

}  // namespace

run::Report job_progress(bool quiet, const std::string& how_to_end) {
  return
      [progress = std::make_shared<Progress>(quiet, how_to_end)](const run::Message& message) { (*progress)(message); };
}

}  // namespace remuda::cli
