#include "top/screen.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "snapshot/sentences.h"
#include "top/body.h"
#include "top/details.h"
#include "top/device_table.h"
#include "top/items.h"
#include "top/job_tables.h"

namespace remuda::top {
namespace {

constexpr std::array kHelp{
    std::pair("up, down, j, k", "choose a device, an alert, a job"),
    std::pair("page up, down, g, G", "further; to the first, to the last"),
    std::pair("Tab", "to the next table"),
    std::pair("Enter", "all that is known of what is chosen; again, or Esc: back"),
    std::pair("s", "sort devices by the next of: number, busy, memory, power, temperature, user"),
    std::pair("r", "the other way round"),
    std::pair("/", "show only what has a text: a user, a job, a model; Esc: all"),
    std::pair("t", "how far back histories go: 15m, 1h, 6h, 24h, 7d"),
    std::pair("c", "cancel the job that is chosen, as `remuda cancel` does; it asks"),
    std::pair("?", "this"),
    std::pair("Ctrl-L", "draw all anew"),
    std::pair("q, Ctrl-C", "end")};

std::vector<Cells> head_of(const Picture& picture, const Choice& choice, size_t width, Charset charset) {
  Line left(charset), right(charset);
  left.add("remuda top", Tone::quiet);
  if (picture.seen) {
    left.add("  ").add(picture.seen->hosts.front().name, Tone::strong);
    left.add(picture.seen->is_recording ? "  a recording, at " : "  ", Tone::quiet).add(picture.clock, Tone::quiet);
  }
  if (!choice.filter.empty()) right.add(fmt::format("  only '{}'", choice.filter), Tone::strong);
  if (choice.order != Order::device || choice.is_reversed)
    right.add(fmt::format("  by {}{}", to_string(choice.order), choice.is_reversed ? ", reversed" : ""), Tone::quiet);
  const size_t room = width - std::min(width, right.width());
  Cells title = fitted(left.cells(), room, charset);
  title.insert(title.end(), right.cells().begin(), right.cells().end());
  std::vector<Cells> head{fitted(std::move(title), width, charset)};
  if (!picture.trouble.empty())
    for (Cells& line : wrapped(
             picture.seen ? fmt::format("{}; what you see is of {}", picture.trouble, picture.clock) : picture.trouble,
             width, 0, charset, Tone::bad))
      head.push_back(fitted(std::move(line), width, charset));
  for (const std::string& text : picture.old)
    for (Cells& line : wrapped(text, width, 0, charset, Tone::warn))
      head.push_back(fitted(std::move(line), width, charset));
  const std::string sentence = picture.seen ? top_sentence(*picture.seen, picture.histories) : "";
  for (Cells& line : wrapped(sentence, width, 0, charset, Tone::strong))
    if (!line.empty()) head.push_back(fitted(std::move(line), width, charset));
  head.emplace_back(width);
  return head;
}

void add_help(Body& body) {
  body.add_title("KEYS");
  const size_t keys = std::min<size_t>(22, body.width() / 3);
  for (const auto& [key, what] : kHelp) {
    bool is_first = true;
    for (const Cells& line : wrapped(what, body.width() - keys, 0, body.charset())) {
      body.add(
          Line(body.charset()).left(is_first ? fmt::format("  {}", key) : "", keys, Tone::strong).add(line).cells());
      is_first = false;
    }
  }
  body.add({});
  body.add_wrapped("BUSY: a kernel ran. EFF.: how much of the device the work used, as far as the card counts that.", 0,
                   Tone::quiet);
}

void add_list(const Picture& picture, const Choice& choice, const std::vector<Item>& items, Body& body) {
  const snapshot::Seen& seen = *picture.seen;
  if (items.empty())
    body.add_wrapped(choice.filter.empty() ? "There is no device" : fmt::format("Nothing has '{}'", choice.filter), 2,
                     Tone::plain);
  add_devices(items, picture.histories, choice.range, seen.hosts.size() > 1, body);
  add_alerts(items, seen.time_s, body);
  add_jobs(items, seen.time_s, body);
  add_runs(items, body);
  add_queue(items, seen.time_s, body);
  const auto missing = missing_reasons(seen);
  if (missing.empty() || !choice.filter.empty()) return;
  body.add_title("NOT KNOWN");
  for (const auto& [reason, of] : missing)
    body.add_wrapped(fmt::format("{} {}: {}", dash(body.charset()), of, reason), 2, Tone::quiet);
}

Body body_of(const Picture& picture, const Choice& choice, size_t width, Charset charset) {
  Body body(width, charset, choice.item);
  if (choice.mode == Mode::help) {
    add_help(body);
  } else if (!picture.seen) {
    if (picture.trouble.empty()) body.add_wrapped("Reading the machine", 2, Tone::quiet);
  } else {
    const std::vector<Item> items = items_of(*picture.seen, choice);
    const auto chosen = std::ranges::find(items, choice.item, &Item::key);
    if (choice.mode == Mode::details && chosen != items.end())
      add_details(*chosen, picture.histories, choice.range, picture.seen->time_s, body);
    else
      add_list(picture, choice, items, body);
  }
  return body;
}

/// What keys do now; or the question, or the answer.
Cells foot_of(const Choice& choice, size_t hidden_above, size_t hidden_below, size_t width, Charset charset) {
  Line left(charset), right(charset);
  if (choice.mode == Mode::filter) {
    left.add("only what has: ", Tone::quiet).add(choice.filter + "_", Tone::strong);
  } else if (choice.mode == Mode::confirm) {
    left.add(fmt::format("Cancel {}? y: yes, any other key: no", choice.job_text), Tone::bad);
  } else if (!choice.message.empty()) {
    left.add(choice.message, Tone::strong);
  } else {
    left.add("q end  ? keys  / filter  s sort  Enter details  c cancel", Tone::quiet);
  }
  const size_t hidden = hidden_below > 0 ? hidden_below : hidden_above;
  constexpr size_t kNarrow = 60;
  if (hidden > 0 && width < kNarrow)
    right.add(fmt::format(" +{}", hidden), Tone::quiet);
  else if (hidden > 0)
    right.add(fmt::format("  {} more {}", hidden, hidden_below > 0 ? "below" : "above"), Tone::quiet);
  if (left.width() + right.width() > width && !choice.message.empty()) return fitted(left.cells(), width, charset);
  const size_t room = width - std::min(width, right.width());
  Cells foot = fitted(left.cells(), room, charset);
  foot.insert(foot.end(), right.cells().begin(), right.cells().end());
  return fitted(std::move(foot), width, charset);
}

/// Whether the list is shown, which is scrolled.
bool shows_list(const Choice& choice) { return choice.mode != Mode::details && choice.mode != Mode::help; }

/// The first line in sight, as near to what it was as the chosen lines allow.
size_t scrolled(size_t first, const Body& body, size_t height) {
  const size_t total = body.lines().size();
  if (const auto chosen = body.chosen()) {
    if (chosen->second >= first + height) first = chosen->second + 1 - height;
    if (chosen->first < first) first = chosen->first;
    if (chosen->first <= 1) first = 0;  // with the header of the first table
  }
  return std::min(first, total > height ? total - height : 0);
}

}  // namespace

Frame frame_of(const Picture& picture, const Choice& choice, Size size, Charset charset) {
  Frame frame;
  frame.rows = head_of(picture, choice, size.columns, charset);
  // On a small screen the list is worth more than the rest of a long sentence.
  const size_t most_head = size.rows > 12 ? size.rows / 3 : std::min<size_t>(2, size.rows);
  if (frame.rows.size() > most_head) frame.rows.resize(most_head);
  const size_t foot = size.rows > frame.rows.size() ? 1 : 0;
  const size_t height = size.rows - frame.rows.size() - foot;
  const Body body = body_of(picture, choice, size.columns, charset);
  const size_t first = scrolled(shows_list(choice) ? choice.first_line : 0, body, height);
  const size_t end = std::min(first + height, body.lines().size());
  frame.rows.insert(frame.rows.end(), body.lines().begin() + static_cast<ptrdiff_t>(first),
                    body.lines().begin() + static_cast<ptrdiff_t>(end));
  frame.rows.resize(size.rows - foot, Cells(size.columns));
  if (foot > 0) frame.rows.push_back(foot_of(choice, first, body.lines().size() - end, size.columns, charset));
  frame.first_line = shows_list(choice) ? first : choice.first_line;
  return frame;
}

std::string whole_text(const Picture& picture, const Choice& choice, size_t columns, Charset charset) {
  std::string text;
  for (const Cells& row : head_of(picture, choice, columns, charset)) text += text_of(row) + "\n";
  const Body body = body_of(picture, choice, columns, charset);
  for (const Cells& row : body.lines()) text += text_of(row) + "\n";
  return text;
}

}  // namespace remuda::top
