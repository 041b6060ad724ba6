#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "doctor/doctor.h"

namespace remuda::doctor {
namespace {

/// Codes of ECMA-48's Select Graphic Rendition: green, yellow, bold red, faint.
const char* colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "32";
    case Verdict::warn:
      return "33";
    case Verdict::fail:
      return "1;31";
    case Verdict::skip:
      return "2";
  }
  return "0";
}

std::string verdict_text(Verdict verdict, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", colour_of(verdict), to_string(verdict)) : to_string(verdict);
}

std::string some(size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

struct Line {
  Verdict verdict;
  std::string group, name, sentence, remedy;
};

/// A line for each diagnosis; adjacent ones of a group that are skipped for the same reason become one.
std::vector<Line> fold(const std::vector<Diagnosis>& diagnoses) {
  const auto is_like = [](const Diagnosis& a, const Diagnosis& b) {
    return a.verdict == Verdict::skip && b.verdict == Verdict::skip && a.sentence == b.sentence && a.group == b.group;
  };
  std::vector<Line> lines;
  for (size_t i = 0; i < diagnoses.size();) {
    const Diagnosis& first = diagnoses[i];
    std::vector<std::string> names{first.name};
    size_t count = 1;
    for (++i; i < diagnoses.size() && is_like(first, diagnoses[i]); ++i) {
      if (diagnoses[i].name != names.back()) names.push_back(diagnoses[i].name);
      ++count;
    }
    Line line{first.verdict, first.group, first.name, printable(first.sentence), printable(first.remedy)};
    if (count > 1) {
      line.name = fmt::format("{} checks", count);
      line.sentence += fmt::format(" ({})", fmt::join(names, ", "));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

Tally tally(const std::vector<Diagnosis>& diagnoses) {
  const auto count = [&](Verdict verdict) {
    return static_cast<size_t>(std::ranges::count(diagnoses, verdict, &Diagnosis::verdict));
  };
  return {count(Verdict::pass), count(Verdict::warn), count(Verdict::fail), count(Verdict::skip)};
}

std::string report_text(const std::vector<Diagnosis>& diagnoses, bool colour) {
  const std::vector<Line> lines = fold(diagnoses);
  size_t width = 0;
  for (const Line& line : lines) width = std::max(width, line.name.size());
  std::string text, group;
  for (const Line& line : lines) {
    if (line.group != group) text += fmt::format("{}{}\n", text.empty() ? "" : "\n", group = line.group);
    text += fmt::format("  {}  {:<{}}  {}\n", verdict_text(line.verdict, colour), line.name, width, line.sentence);
    if (!line.remedy.empty()) text += fmt::format("  {:{}}-> {}\n", "", width + sizeof "PASS" + 3, line.remedy);
  }
  const Tally counts = tally(diagnoses);
  return text + fmt::format("\n{} passed, {}, {} failed, {} skipped\n", counts.passed,
                            some(counts.warnings, "warning", "warnings"), counts.failed, counts.skipped);
}

Json report_json(const std::vector<Diagnosis>& diagnoses) {
  Json checks = Json::array();
  for (const Diagnosis& diagnosis : diagnoses) {
    Json check{{"name", diagnosis.name}, {"verdict", to_string(diagnosis.verdict)}, {"sentence", diagnosis.sentence}};
    if (!diagnosis.remedy.empty()) check["remedy"] = diagnosis.remedy;
    if (!diagnosis.device.empty()) check["device"] = diagnosis.device;
    checks.push_back(std::move(check));
  }
  const Tally counts = tally(diagnoses);
  return {{"checks", std::move(checks)},
          {"passed", counts.passed},
          {"warnings", counts.warnings},
          {"failed", counts.failed},
          {"skipped", counts.skipped}};
}

}  // namespace remuda::doctor
