#include "top/terminal.h"

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <langinfo.h>
#include <poll.h>
#include <string>
#include <termios.h>
#include <unistd.h>

#define NCURSES_NOMACROS 1
#include <curses.h>

#include "top/keys.h"

extern "C" char* tigetstr(const char* name);  // of <term.h>, which makes macros of words such as "tab"

namespace remuda::top {
namespace {

// ---- where the process ends by a fault, its handler gives the terminal back. It may call little, so all is ready
// here.

constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

termios mode_before;
std::array<char, 256> leave_text{};  // what makes the screen as it was: cursor, colours, the other screen
volatile std::sig_atomic_t is_taken = 0;
pid_t owner = 0;  // children that probe devices may end by a fault, too: the terminal is not theirs

void give_back(int signal) {
  if (is_taken != 0 && ::getpid() == owner) {
    (void)!::write(STDOUT_FILENO, leave_text.data(), ::strnlen(leave_text.data(), leave_text.size()));
    ::tcsetattr(STDIN_FILENO, TCSANOW, &mode_before);
  }
  ::raise(signal);  // SA_RESETHAND: the default action follows
}

/// What the terminal understands by that name; null where it does not.
const char* capability(const char* name) {
  const char* const text = ::tigetstr(name);
  return reinterpret_cast<intptr_t>(text) == -1 ? nullptr : text;
}

void prepare_for_faults() {
  std::string leave;
  for (const char* name : {"sgr0", "cnorm", "rmkx", "rmcup"}) {
    if (const char* const text = capability(name)) leave += text;
  }
  leave.copy(leave_text.data(), leave_text.size() - 1);
  struct sigaction action{};
  action.sa_handler = give_back;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int fault : kFaults) ::sigaction(fault, &action, nullptr);
}

void forget_faults() {
  is_taken = 0;
  for (const int fault : kFaults) ::signal(fault, SIG_DFL);
}

// ---- a terminal that was made smaller and larger again has lost what stood there; ncurses sees one size and draws
// nothing

struct sigaction resize_of_ncurses{};
volatile std::sig_atomic_t is_to_repaint = 0;

void repaint(int signal) {
  is_to_repaint = 1;
  if (resize_of_ncurses.sa_handler != SIG_DFL && resize_of_ncurses.sa_handler != SIG_IGN)
    resize_of_ncurses.sa_handler(signal);
}

void follow_size() {
  struct sigaction action{};
  action.sa_handler = repaint;
  ::sigaction(SIGWINCH, &action, &resize_of_ncurses);
}

// ---- what tones look like

constexpr short kWork = 1, kWarn = 2, kBad = 3;

struct Look {
  attr_t attributes = A_NORMAL;
  short pair = 0;
  bool operator==(const Look&) const = default;
};

Look look_of(const Cell& cell, bool has_colours) {
  Look look;
  switch (cell.tone) {
    case Tone::plain:
      break;
    case Tone::quiet:
      look.attributes = A_DIM;
      break;
    case Tone::strong:
      look.attributes = A_BOLD;
      break;
    case Tone::work:
      look.pair = has_colours ? kWork : short{0};
      break;
    case Tone::warn:
      look = has_colours ? Look{A_NORMAL, kWarn} : Look{A_BOLD, 0};
      break;
    case Tone::bad:
      look = has_colours ? Look{A_BOLD, kBad} : Look{A_BOLD, 0};
      break;
  }
  if (cell.is_chosen) look = {A_REVERSE, 0};
  return look;
}

/// A cell's characters, if the C library agrees that they take so many columns; else the terminal would put what stands
/// behind them elsewhere.
std::wstring characters_of(const Cell& cell, bool is_wide) {
  std::array<wchar_t, 8> wide{};
  const size_t length = std::mbstowcs(wide.data(), cell.text.c_str(), wide.size());
  std::wstring unknown = is_wide ? L"? " : L"?";
  if (length == 0 || length >= wide.size()) return unknown;
  return ::wcswidth(wide.data(), length) == (is_wide ? 2 : 1) ? std::wstring(wide.data(), length) : unknown;
}

char32_t special(wint_t code) {
  switch (code) {
    case KEY_UP:
      return Key::up;
    case KEY_DOWN:
      return Key::down;
    case KEY_PPAGE:
      return Key::page_up;
    case KEY_NPAGE:
      return Key::page_down;
    case KEY_HOME:
      return Key::home;
    case KEY_END:
      return Key::end;
    case KEY_BACKSPACE:
    case KEY_DC:
      return Key::backspace;
    case KEY_ENTER:
      return Key::enter;
    case KEY_RESIZE:
      return Key::resize;
    default:
      return Key::other;
  }
}

class Ncurses : public Terminal {
 public:
  Ncurses(SCREEN* screen, bool wants_colours) : screen_(screen) {
    has_colours_ = wants_colours && ::has_colors() && ::start_color() == OK;
    if (has_colours_) {
      const short background = ::use_default_colors() == OK ? short{-1} : short{COLOR_BLACK};
      ::init_pair(kWork, COLOR_CYAN, background);
      ::init_pair(kWarn, COLOR_YELLOW, background);
      ::init_pair(kBad, COLOR_RED, background);
    }
    ::cbreak();
    ::noecho();
    ::nonl();
    ::curs_set(0);
    ::set_escdelay(25);
    ::keypad(stdscr, TRUE);
    ::nodelay(stdscr, TRUE);
    ::intrflush(stdscr, FALSE);
    follow_size();
    prepare_for_faults();
    owner = ::getpid();
    is_taken = 1;
  }
  ~Ncurses() override {
    ::endwin();
    forget_faults();
    ::sigaction(SIGWINCH, &resize_of_ncurses, nullptr);
    ::delscreen(screen_);
  }
  Ncurses(const Ncurses&) = delete;

  Size size() const override {
    return {static_cast<size_t>(::getmaxy(stdscr)), static_cast<size_t>(::getmaxx(stdscr))};
  }

  bool draw(const Frame& frame) override {
    pollfd out{STDOUT_FILENO, POLLOUT, 0};
    if (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) return false;
    if (is_to_repaint != 0) ::clearok(curscr, TRUE);
    is_to_repaint = 0;
    ::werase(stdscr);
    for (size_t row = 0; row < frame.rows.size(); ++row) draw_row(static_cast<int>(row), frame.rows[row]);
    ::wrefresh(stdscr);
    return true;
  }

  std::optional<char32_t> next_key() override {
    wint_t code = 0;
    const int kind = ::wget_wch(stdscr, &code);
    if (kind == ERR) return std::nullopt;
    if (kind == KEY_CODE_YES) return special(code);
    if (code == kControl_L) {
      is_to_repaint = 1;
      return Key::other;
    }
    if (code == '\r') return Key::enter;
    if (code == 0x7f || code == 0x08) return Key::backspace;
    return static_cast<char32_t>(code);
  }

 private:
  static constexpr wint_t kControl_L = 0x0c;

  void draw_row(int row, const Cells& cells) const {
    for (size_t i = 0; i < cells.size();) {
      const Look look = look_of(cells[i], has_colours_);
      const size_t begin = i;
      std::wstring run;
      for (; i < cells.size() && look_of(cells[i], has_colours_) == look; ++i) {
        if (cells[i].text.empty()) continue;
        run += characters_of(cells[i], i + 1 < cells.size() && cells[i + 1].text.empty());
      }
      ::wattr_set(stdscr, look.attributes, look.pair, nullptr);
      ::mvwaddwstr(stdscr, row, static_cast<int>(begin), run.c_str());
    }
  }

  SCREEN* const screen_;
  bool has_colours_;
};

}  // namespace

Charset charset_of_locale() {
  return std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0 ? Charset::utf8 : Charset::ascii;
}

Result<std::unique_ptr<Terminal>> Terminal::open(bool has_colours) {
  if (::isatty(STDOUT_FILENO) == 0)
    return usage_error("standard output is no terminal; `remuda top --once` prints one picture");
  if (::isatty(STDIN_FILENO) == 0)
    return usage_error("standard input is no terminal, so no key could be pressed; try `remuda top --once`");
  ::tcgetattr(STDIN_FILENO, &mode_before);
  SCREEN* const screen = ::newterm(nullptr, stdout, stdin);
  if (!screen)
    return usage_error(
        "this terminal is not known, or TERM does not say which it is; `remuda top --once` works on any");
  if (!capability("cup")) {
    ::endwin();
    ::delscreen(screen);
    return usage_error("this terminal cannot move its cursor (TERM); `remuda top --once` works on any");
  }
  return std::make_unique<Ncurses>(screen, has_colours);
}

}  // namespace remuda::top
