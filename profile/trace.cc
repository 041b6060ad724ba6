#include "profile/trace.h"

#include <cmath>
#include <fmt/format.h>

namespace remuda::profile {
namespace {

/// Of time 0, in whole nanoseconds: rounded so, spans that are nested stay nested.
int64_t nanoseconds(double time_s, double zero_s) { return std::llround((time_s - zero_s) * 1e9); }

/// Times are microseconds in this format.
std::string microseconds(int64_t ns) {
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
}

// Viewers keep the numbers 0 for the system, and expect a thread's to be the only one in a file.
int process_id(int rank) { return rank + 1; }
int thread_id(int rank, size_t thread) { return 1000 * process_id(rank) + int(thread); }

std::string quoted(std::string_view text) { return to_line(Json(text)); }

/// A name of the process or of one of its threads, and where it stands among them.
std::string metadata(const char* what, int rank, size_t thread, std::string_view name, size_t order) {
  const auto event = [&](const char* key, const std::string& argument) {
    return fmt::format(R"({{"ph":"M","name":"{}_{}","pid":{},"tid":{},"args":{{{}}}}},)"
                       "\n",
                       what, key, process_id(rank), thread_id(rank, thread), argument);
  };
  return event("name", "\"name\":" + quoted(name)) + event("sort_index", fmt::format("\"sort_index\":{}", order));
}

std::string arguments(const Details& details) {
  std::string text;
  for (const Detail& detail : details)
    if (detail.name) text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", detail.name, detail.value);
  return text;
}

std::string event(const Process& process, size_t thread, const SpanRecord& span) {
  const int64_t start = nanoseconds(span.start_s, process.zero_s), end = nanoseconds(span.end_s, process.zero_s);
  return fmt::format(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}},)"
                     "\n",
                     span.kind == Kind::work ? "work" : "operator", quoted(span.name), process_id(process.rank),
                     thread_id(process.rank, thread), microseconds(start), microseconds(end - start),
                     arguments(span.details));
}

std::string event(const Process& process, const std::string& counter, const CounterRecord::Value& value) {
  return fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"value":{}}}}},)"
                     "\n",
                     quoted(std::string_view(counter)), process_id(process.rank),
                     microseconds(nanoseconds(value.time_s, process.zero_s)), value.value);
}

}  // namespace

std::string trace_head(const Json& about) {
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[\n", to_line(about));
}

std::string trace_events(const Process& process, std::span<const TrackRecord> tracks,
                         std::span<const CounterRecord> counters, bool is_last) {
  std::string text = metadata("process", process.rank, 0, process.name, size_t(process.rank));
  for (size_t thread = 0; thread < tracks.size(); ++thread)
    text += metadata("thread", process.rank, thread, tracks[thread].name, thread);
  for (size_t thread = 0; thread < tracks.size(); ++thread)
    for (const SpanRecord& span : tracks[thread].spans) text += event(process, thread, span);
  for (const CounterRecord& counter : counters)
    for (const CounterRecord::Value& value : counter.values) text += event(process, counter.name, value);
  if (is_last) text.erase(text.size() - 2, 1);
  return text;
}

std::string trace_end() { return "]}\n"; }

}  // namespace remuda::profile
