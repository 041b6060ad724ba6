// remuda top: shows in a terminal what `remuda web` shows in a browser.
#include <chrono>
#include <clocale>
#include <fmt/format.h>
#include <future>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/env.h"
#include "cli/jobs/cancel.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "cli/watch/source_flags.h"
#include "device/words.h"
#include "process/stop_signals.h"
#include "top/keys.h"
#include "top/poller.h"
#include "top/screen.h"
#include "top/terminal.h"

namespace remuda::cli {
namespace {

constexpr const char* kTopHelp =
    "The same as the page of `remuda web`, over ssh too: a sentence about the whole, then each device with its load, "
    "its\n"
    "memory, what it did lately and who has it; alerts, jobs, the queue with its reasons, and why readings are "
    "missing.\n"
    "Arrow keys choose, Enter shows more, s sorts, / filters, c cancels the job that is chosen as `remuda cancel` "
    "does\n"
    "(it asks), ? lists all keys, q ends it. A history is there as far as `remuda watch` or this kept it.\n\n"
    "Without colours where NO_COLOR is set, and in plain ASCII where the locale is not UTF-8.\n\n"
    "Examples:\n"
    "  remuda top                          this machine\n"
    "  remuda top --demo                   eight unlike GPUs and their users, recorded: needs no GPU\n"
    "  remuda top --replay machine.json    a recording of `remuda record`\n"
    "  remuda top --sort busy --filter ana\n"
    "  remuda top --once | head            one picture as text, for pipes\n";

struct TopFlags {
  SourceFlags source;
  bool once = false;
  size_t columns = 0;
  std::string sort = "device", range = "1h", filter;
};

/// Jobs are cancelled on a thread of its own: a pool may be busy. One at a time.
class Canceller {
 public:
  explicit Canceller(MachineFlags machine) : machine_(std::move(machine)) {}

  bool is_busy() const { return outcome_.valid(); }
  /// False: another one is being cancelled.
  bool cancel(int64_t job, const std::string& text) {
    if (is_busy()) return false;
    outcome_ = std::async(std::launch::async, [machine = machine_, job, text] {
      const auto done = cancel_jobs(machine, std::vector<int64_t>{job});
      return done ? fmt::format("Cancelled {}", text) : done.error().message;
    });
    return true;
  }
  /// What became of it, once.
  std::optional<std::string> take() {
    if (!is_busy() || outcome_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
    return outcome_.get();
  }

 private:
  const MachineFlags machine_;
  std::future<std::string> outcome_;
};

/// Waits for a key, a picture or a signal, but not for long while a job is being cancelled or a frame is owed. False:
/// it is over.
bool wait_for_news(process::StopSignals& stop, const top::Poller& poller, bool is_soon) {
  constexpr int kSoon_ms = 50, kLong_ms = 1000;
  pollfd events[]{{STDIN_FILENO, POLLIN, 0}, {poller.fd(), POLLIN, 0}, {stop.fd(), POLLIN, 0}};
  ::poll(events, std::size(events), is_soon ? kSoon_ms : kLong_ms);
  return !stop.next() && (events[0].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

void show(top::Terminal& terminal, top::Poller& poller, process::StopSignals& stop, Canceller& canceller,
          top::Choice choice) {
  const top::Charset charset = top::charset_of_locale();
  bool is_drawn = false;
  do {
    const auto picture = poller.picture();
    const snapshot::Seen* const seen = picture->seen ? &*picture->seen : nullptr;
    while (const auto key = terminal.next_key()) {
      const top::Wish wish = top::press(*key, seen, choice);
      if (wish == top::Wish::quit) return;
      if (wish == top::Wish::cancel && !canceller.cancel(choice.job, choice.job_text))
        choice.message = "Another job is being cancelled; try again in a moment";
    }
    if (auto outcome = canceller.take()) choice.message = std::move(*outcome);
    poller.show(choice.range);
    const top::Frame frame = top::frame_of(*picture, choice, terminal.size(), charset);
    choice.first_line = frame.first_line;
    is_drawn = terminal.draw(frame);
  } while (wait_for_news(stop, poller, canceller.is_busy() || !is_drawn));
}

template <Worded Enum>
std::vector<std::string> words_of() {
  std::vector<std::string> words;
  for (const auto& [_, word] : Words<Enum>::table) words.emplace_back(word);
  return words;
}

Result<int> run(const TopFlags& flags) {
  std::setlocale(LC_CTYPE, "");
  top::Choice choice{.order = *from_word<top::Order>(flags.sort),
                     .range = *from_word<top::Range>(flags.range),
                     .filter = flags.filter};
  if (flags.once) {
    REMUDA_ASSIGN(const auto source, open_source(flags.source));
    const top::Picture picture = top::next_picture(*source, choice.range, {});
    if (!picture.seen) return tl::unexpected(picture.seen.error());
    const size_t columns = flags.columns > 0 ? flags.columns : terminal_width(STDOUT_FILENO).value_or(80);
    fmt::print("{}", top::whole_text(picture, choice, columns, top::charset_of_locale()));
    return 0;
  }
  REMUDA_ASSIGN(std::optional<process::StopSignals> stop, process::StopSignals::hold_with_hang_up());
  REMUDA_ASSIGN(const auto source, open_source(flags.source));
  REMUDA_ASSIGN(auto terminal, top::Terminal::open(env::get(env::no_color).value_or("").empty()));
  REMUDA_ASSIGN(const auto poller, top::Poller::start(*source, choice.range));
  Canceller canceller(flags.source.machine);
  show(*terminal, *poller, *stop, canceller, std::move(choice));
  // What is left is to wait for a machine that may be slow: in the terminal as it was, and Ctrl-C ends that at once.
  terminal.reset();
  stop.reset();
  return 0;
}

}  // namespace

void add_top(Program& program) {
  auto flags = std::make_shared<TopFlags>();
  CLI::App& command =
      program.add("top", "Show machine, users and queue in a terminal", [flags] { return run(*flags); });
  auto* once = command.add_flag("--once", flags->once, "Print one picture as plain text, and end");
  command.add_option("--columns", flags->columns, "Its width; that of the terminal, or 80, unless given")
      ->type_name("N")
      ->check(CLI::Range(20, 1000))
      ->needs(once);
  command.add_option("--sort", flags->sort, "By what devices are sorted at first")
      ->check(CLI::IsMember(words_of<top::Order>()))
      ->capture_default_str();
  command.add_option("--range", flags->range, "How far back histories go at first")
      ->check(CLI::IsMember(words_of<top::Range>()))
      ->capture_default_str();
  command.add_option("--filter", flags->filter, "Show only what has this text, at first")->type_name("TEXT");
  add_source_options(command, flags->source);
  command.footer(kTopHelp);
}

}  // namespace remuda::cli
