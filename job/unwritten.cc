#include "job/unwritten.h"

#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <utility>

#include "base/text.h"

namespace remuda::job {
namespace {

namespace fs = std::filesystem;

std::string name_of_output(const std::string& output) {
  static const std::map<std::string, const char*> kNames{{"weights", "the weights"},
                                                         {"checkpoint", "the last checkpoint"},
                                                         {"trace", "the trace"},
                                                         {"tensorboard", "what TensorBoard shows"},
                                                         {"step_times", "the step times"}};
  const auto found = kNames.find(output);
  return found == kNames.end() ? printable(output) : found->second;
}

/// Of the folder, or the nearest one above it that is there.
std::optional<uint64_t> free_bytes_at(fs::path folder) {
  for (std::error_code error;; folder = folder.parent_path()) {
    const fs::space_info space = fs::space(folder.empty() ? "." : folder, error);
    if (!error) return space.available;
    if (folder.empty() || folder == folder.parent_path()) return std::nullopt;
  }
}

const Json* field_of(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? &*found : nullptr;
}

std::string text_field(const Json& object, const char* key) {
  const Json* const field = field_of(object, key);
  return field && field->is_string() ? field->get<std::string>() : "";
}

std::optional<uint64_t> count_field(const Json& object, const char* key) {
  const Json* const field = field_of(object, key);
  return field && field->is_number_unsigned() ? std::optional(field->get<uint64_t>()) : std::nullopt;
}

}  // namespace

Unwritten unwritten(std::string output, std::string why, const std::string& path, uint64_t bytes) {
  return {std::move(output), std::move(why), bytes, free_bytes_at(path)};
}

Json to_json(const Unwritten& unwritten) {
  Json json{{"output", unwritten.output}, {"why", unwritten.why}};
  if (unwritten.bytes > 0) json["bytes"] = unwritten.bytes;
  if (unwritten.free_bytes) json["free_bytes"] = *unwritten.free_bytes;
  return json;
}

std::vector<Unwritten> unwritten_in(const Json& report) {
  std::vector<Unwritten> all;
  const Json* const list = field_of(report, "unwritten");
  for (const Json& one : list && list->is_array() ? *list : Json::array())
    all.push_back({text_field(one, "output"), text_field(one, "why"), count_field(one, "bytes").value_or(0),
                   count_field(one, "free_bytes")});
  return all;
}

std::string text_of(const Unwritten& unwritten) {
  std::vector<std::string> sizes;
  if (unwritten.bytes > 0) sizes.push_back(human_bytes(double(unwritten.bytes)) + " are needed");
  if (unwritten.free_bytes) sizes.push_back(human_bytes(double(*unwritten.free_bytes)) + " are free");
  const std::string room = sizes.empty() ? "" : fmt::format(" ({})", fmt::join(sizes, ", "));
  return fmt::format("{}: {}{}", name_of_output(unwritten.output), printable(unwritten.why), room);
}

std::string unwritten_text(const std::vector<Unwritten>& all) {
  if (all.empty()) return "";
  std::vector<std::string> texts;
  for (const Unwritten& one : all) texts.push_back(text_of(one));
  return fmt::format("not all that the run was to leave could be written: {}", fmt::join(texts, "; "));
}

}  // namespace remuda::job
