#include "top/keys.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

#include "top/items.h"

namespace remuda::top {
namespace {

template <typename Enum>
Enum after(Enum value) {
  const auto& table = Words<Enum>::table;
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].first == value) return table[(i + 1) % table.size()].first;
  return value;
}

/// Of a list that may have lost what was chosen.
void move_by(ptrdiff_t steps, const std::vector<Item>& items, Choice& choice) {
  if (items.empty()) return;
  const auto found = std::ranges::find(items, choice.item, &Item::key);
  const auto last = static_cast<ptrdiff_t>(items.size()) - 1;
  const ptrdiff_t at = found == items.end() ? (steps > 0 ? -1 : 0) : found - items.begin();
  const ptrdiff_t to = std::clamp<ptrdiff_t>(at + steps, 0, last);
  choice.item = items[static_cast<size_t>(to)].key;
}

/// To the first item of the next kind that there is.
void move_to_next_kind(const std::vector<Item>& items, Choice& choice) {
  if (items.empty()) return;
  auto at = std::ranges::find(items, choice.item, &Item::key);
  if (at == items.end()) return move_by(1, items, choice);
  const Kind kind = at->kind;
  at = std::find_if(at, items.end(), [&](const Item& item) { return item.kind != kind; });
  choice.item = at == items.end() ? items.front().key : at->key;
}

void ask_to_cancel(const snapshot::Seen& seen, const std::vector<Item>& items, Choice& choice) {
  const auto item = std::ranges::find(items, choice.item, &Item::key);
  if (item == items.end() || item->job == 0) {
    choice.message = "Choose a job first, with the arrow keys: c cancels it";
  } else if (seen.is_recording) {
    choice.message = "This is a recording: nothing can be cancelled";
  } else {
    choice.job = item->job;
    choice.job_text = item->text;
    choice.mode = Mode::confirm;
  }
}

/// Typing a filter. It is cut by characters, not by bytes.
void type(char32_t key, Choice& choice) {
  constexpr size_t kMostBytes = 200;
  std::string& text = choice.filter;
  if (key == Key::enter) {
    choice.mode = Mode::list;
  } else if (key == Key::escape) {
    text.clear();
    choice.mode = Mode::list;
  } else if (key == Key::backspace) {
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
    if (!text.empty()) text.pop_back();
  } else if (key >= ' ' && key != 0x7f && key < Key::up && text.size() < kMostBytes) {
    const auto byte = [&](char32_t value) { text += static_cast<char>(value); };
    if (key < 0x80) return byte(key);
    if (key < 0x800) return byte(0xc0 | key >> 6), byte(0x80 | (key & 0x3f));
    if (key < 0x10000) return byte(0xe0 | key >> 12), byte(0x80 | (key >> 6 & 0x3f)), byte(0x80 | (key & 0x3f));
    byte(0xf0 | key >> 18), byte(0x80 | (key >> 12 & 0x3f)), byte(0x80 | (key >> 6 & 0x3f)), byte(0x80 | (key & 0x3f));
  }
}

Wish answer(char32_t key, Choice& choice) {
  choice.mode = Mode::list;
  if (key != 'y' && key != 'Y') {
    choice.message = "Nothing was cancelled";
    return Wish::nothing;
  }
  choice.message = fmt::format("Cancelling {} ...", choice.job_text);
  return Wish::cancel;
}

/// Keys that choose among the items, or do something with the one that is chosen. False: it is none of them.
bool press_on_items(char32_t key, const snapshot::Seen& seen, Choice& choice) {
  constexpr ptrdiff_t kPage = 10, kAll = 1 << 30;
  const std::vector<Item> items = items_of(seen, choice);
  if (key == Key::up || key == 'k') return move_by(-1, items, choice), true;
  if (key == Key::down || key == 'j') return move_by(1, items, choice), true;
  if (key == Key::page_up) return move_by(-kPage, items, choice), true;
  if (key == Key::page_down) return move_by(kPage, items, choice), true;
  if (key == Key::home || key == 'g') return move_by(-kAll, items, choice), true;
  if (key == Key::end || key == 'G') return move_by(kAll, items, choice), true;
  if (key == Key::tab) return move_to_next_kind(items, choice), true;
  if (key == 'c') return ask_to_cancel(seen, items, choice), true;
  if (key != Key::enter) return false;
  if (std::ranges::find(items, choice.item, &Item::key) == items.end())
    choice.message = "Choose something first, with the arrow keys: Enter shows all of it";
  else
    choice.mode = choice.mode == Mode::details ? Mode::list : Mode::details;
  return true;
}

}  // namespace

Wish press(char32_t key, const snapshot::Seen* seen, Choice& choice) {
  if (key == Key::resize || key == Key::other) return Wish::nothing;
  choice.message.clear();
  if (choice.mode == Mode::filter) return type(key, choice), Wish::nothing;
  if (choice.mode == Mode::confirm) return answer(key, choice);
  if (key == 'q' || key == 'Q') return Wish::quit;
  if (choice.mode == Mode::help) return choice.mode = Mode::list, Wish::nothing;
  if (key == '?' || key == 'h') return choice.mode = Mode::help, Wish::nothing;
  if (key == Key::escape && choice.mode == Mode::details) return choice.mode = Mode::list, Wish::nothing;
  if (seen && press_on_items(key, *seen, choice)) return Wish::nothing;
  if (key == '/') choice.mode = Mode::filter;
  if (key == 's') choice.order = after(choice.order);
  if (key == 'r') choice.is_reversed = !choice.is_reversed;
  if (key == 't') choice.range = after(choice.range);
  if (key == Key::escape) choice.filter.clear(), choice.item.clear();
  return Wish::nothing;
}

}  // namespace remuda::top
