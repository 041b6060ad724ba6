#include "recorded/around_xml.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/text.h"
#include "recorded/text.h"

namespace remuda::recorded {
namespace {

constexpr size_t kMostLines = 16;
constexpr size_t kLongestLine = 300;

/// Where a document begins; one without a declaration, at the beginning of a line.
size_t document_begin(std::string_view text) {
  constexpr std::array<std::string_view, 4> kBeginnings{"<!DOCTYPE", "<nvidia_smi_log", "<system>", "<system "};
  const size_t declared = text.find("<?xml");
  for (size_t at = 0; at < std::min(declared, text.size());) {
    const std::string_view line = trim(text.substr(at, text.find('\n', at) - at));
    const bool begins = std::ranges::any_of(kBeginnings, [&](auto word) { return line.starts_with(word); });
    if (begins) return text.find('<', at);
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  }
  return declared;
}

/// The name of the root element: that of the first tag that is neither a declaration nor a comment.
std::string_view root_of(std::string_view xml) {
  for (size_t at = 0; (at = xml.find('<', at)) != std::string_view::npos; ++at) {
    if (at + 1 >= xml.size() || xml[at + 1] == '?' || xml[at + 1] == '!') continue;
    const size_t end = xml.find_first_of(" \t\r\n/>", at + 1);
    return xml.substr(at + 1, end == std::string_view::npos ? end : end - at - 1);
  }
  return {};
}

/// The length of the document at the front of `text`; all of it where its end is missing.
size_t document_length(std::string_view text) {
  const std::string closing = fmt::format("</{}", root_of(text));
  const size_t closed = closing.size() > 2 ? text.find(closing) : std::string_view::npos;
  const size_t end = closed == std::string_view::npos ? closed : text.find('>', closed);
  return end == std::string_view::npos ? text.size() : end + 1;
}

/// Each line made printable(), which would take the ends of lines for control characters.
std::string printable_lines(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    clean += printable(text.substr(at, end - at));
    if (end < text.size()) clean += text[end];
    at = end + 1;
  }
  return clean;
}

bool is_reference(std::string_view text) {
  constexpr std::array<std::string_view, 5> kReferences{"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
  return std::ranges::any_of(kReferences, [&](auto reference) { return text.starts_with(reference); });
}

void append_text(std::string_view text, std::string& xml) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<')
      xml += "&lt;";
    else if (text[i] == '>')
      xml += "&gt;";
    else if (text[i] == '&' && !is_reference(text.substr(i)))
      xml += "&amp;";
    else
      xml += text[i];
  }
}

/// The names of processes as text, up to the last closing tag of the line in which the first stands.
std::string with_plain_names(std::string_view text) {
  constexpr std::string_view kOpen = "<process_name>", kClose = "</process_name>";
  std::string xml;
  xml.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find(kOpen, at), name = open + kOpen.size();
    const size_t first = open == std::string_view::npos ? open : text.find(kClose, name);
    if (first == std::string_view::npos) return xml += text.substr(at), xml;
    const size_t next = text.find(kOpen, name);
    const size_t line_end = std::min({text.find('\n', first), next, text.size()});
    const size_t close = text.substr(0, line_end).rfind(kClose);
    xml += text.substr(at, name - at);
    append_text(text.substr(name, std::max(first, close) - name), xml);
    at = std::max(first, close);
  }
  return xml;
}

void take_lines(std::string_view text, AroundXml& around, size_t& left_out) {
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    if (line.empty()) continue;
    if (line.starts_with('#')) {
      if (around.comment.empty()) around.comment = comment_text(line);
    } else if (around.lines.size() < kMostLines) {
      around.lines.push_back(brief(line, kLongestLine));
    } else {
      ++left_out;
    }
  }
}

}  // namespace

std::optional<AroundXml> find_xml(std::string_view text) {
  size_t begin = trim(text).starts_with('<') ? text.find('<') : document_begin(text);
  if (begin == std::string_view::npos) return std::nullopt;
  AroundXml around;
  size_t left_out = 0;
  bool is_first = true;
  for (; begin != std::string_view::npos; begin = document_begin(text)) {
    take_lines(text.substr(0, begin), around, left_out);
    const size_t length = document_length(text.substr(begin));
    if (is_first)
      around.xml = with_plain_names(printable_lines(text.substr(begin, length)));
    else
      ++around.further;
    is_first = false;
    text.remove_prefix(begin + length);
  }
  take_lines(text, around, left_out);
  if (left_out > 0) around.lines.push_back(fmt::format("and {} more", counted(static_cast<double>(left_out), "line")));
  return around;
}

}  // namespace remuda::recorded
