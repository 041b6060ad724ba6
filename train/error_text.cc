#include "train/error_text.h"

#include <algorithm>
#include <c10/util/Exception.h>
#include <cctype>
#include <fmt/format.h>
#include <ranges>
#include <torch/version.h>
#include <vector>

#include "base/text.h"

namespace remuda::train {
namespace {

constexpr std::string_view kHere = "<--- HERE";
constexpr size_t kLongestCode = 120;
/// After the operator's name, since 1.7.
constexpr std::string_view kNotDeterministic = " does not have a deterministic implementation";

std::string trimmed(const std::string& line, const char* ends) {
  const size_t first = line.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  const size_t last = line.find_last_not_of(ends);
  return last == std::string::npos || last < first ? "" : line.substr(first, last + 1 - first);
}

/// "ValueError" of "ValueError: wants 7"; empty where the line does not say what was raised.
std::string raised_by(const std::string& line) {
  const std::string name = line.substr(0, line.find(": "));
  const bool is_word =
      std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_'; });
  const bool is_error = name.ends_with("Error") || name.ends_with("Exception");
  return is_word && is_error && name.size() < line.size() ? name : "";
}

/// After a traceback of TorchScript's interpreter the cause comes last, and may have lines of its own.
std::string cause_in(const std::vector<std::string>& lines) {
  constexpr const char *kEnds = " .:\r", *kRuntime = "RuntimeError";
  const auto has_text = [](const std::string& line) { return !trimmed(line, " .:\r").empty(); };
  const auto first = std::ranges::find_if(lines, has_text);
  if (first == lines.end()) return "an exception without a text";
  if (!first->starts_with("The following operation failed")) return trimmed(*first, kEnds);
  for (const std::string& line : lines | std::views::reverse) {
    const std::string raised = raised_by(line);
    if (raised == kRuntime) return trimmed(line.substr(raised.size() + 2), kEnds);
    if (!raised.empty()) return trimmed(line, kEnds);
  }
  return trimmed(*std::ranges::find_if(lines | std::views::reverse, has_text), kEnds);
}

/// "FILE, line 3" of `File "FILE", line 3, in forward`; empty for other lines.
std::string frame_of(const std::string& line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  const std::string text = trimmed(line, " \r");
  const size_t end = text.find(kLine);
  if (!text.starts_with(kFile) || end == text.npos) return "";
  const std::string number = text.substr(end + kLine.size());
  return fmt::format("{}, line {}", text.substr(kFile.size(), end - kFile.size()),
                     number.substr(0, number.find_first_not_of("0123456789")));
}

/// "FILE, line 3: CODE", of the innermost frame; without the code where none is marked; empty where there is no frame.
std::string place_in(const std::vector<std::string>& lines) {
  const auto here = std::ranges::find_if(lines | std::views::reverse,
                                         [](const std::string& line) { return line.find(kHere) != line.npos; });
  const bool is_marked = here.base() - lines.begin() >= 2;
  const auto behind = is_marked ? here.base() : lines.end();  // the mark, and the code before it
  for (auto line = behind; line != lines.begin();) {
    std::string place = frame_of(*--line);
    if (place.empty()) continue;
    if (!is_marked) return place;
    const std::string code = trimmed(*(behind - 2), " \r");
    if (code.size() <= kLongestCode) return fmt::format("{}: {}", place, code);
    size_t end = kLongestCode;
    while (end > 0 && (static_cast<unsigned char>(code[end]) & 0xc0) == 0x80) --end;  // between characters of UTF-8
    return fmt::format("{}: {} ...", place, code.substr(0, end));
  }
  return "";
}

/// Of an operator that has no kernel which train.deterministic allows, what to do about it; other causes as they are.
std::string advised(const std::string& cause) {
  const size_t end = cause.find(kNotDeterministic);
  if (end == std::string::npos) return cause;
  const std::string before = cause.substr(0, end);
  return fmt::format(
      "{} has no kernel on this device that gives the same bits each time (libtorch {}); leave "
      "train.deterministic out",
      before.substr(before.rfind(' ') + 1), TORCH_VERSION);
}

}  // namespace

std::string sentence_in(std::string_view text) {
  const std::vector<std::string> lines = split(std::string(text), '\n');
  const std::string cause = advised(cause_in(lines)), place = place_in(lines);
  return place.empty() ? cause : fmt::format("{} ({})", cause, place);
}

std::string sentence_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return sentence_in(torch_error ? torch_error->what_without_backtrace() : error.what());
}

}  // namespace remuda::train
