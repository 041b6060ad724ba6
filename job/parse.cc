#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>

#include "base/text.h"
#include "job/document.h"
#include "job/names.h"
#include "job/overrides.h"
#include "job/rules.h"
#include "job/schema.h"
#include "job/train_job.h"

namespace remuda::job {
namespace {

/// data.train = "FILE" -> data.train.tokens = "FILE", or data.train.path for formats of images; the same for test.
void expand_short_form(toml::table& table) {
  const toml::node* format = find_node(table, "data.format");
  const std::string word = format && format->is_string() ? format->as_string()->get() : "";
  const bool images = word == "images" || word == "cifar";
  for (const std::string name : {"train", "test"}) {
    toml::node* node = find_node(table, "data." + name);
    if (!node || !node->is_string()) continue;
    toml::table files;
    files.insert(images ? "path" : "tokens", std::move(*node->as_string()));
    find_node(table, "data")->as_table()->insert_or_assign(name, std::move(files));
  }
}

void make_absolute(std::string& path, const std::string& job_file) {
  const std::filesystem::path folder = std::filesystem::absolute(job_file).parent_path();
  path = (folder / path).lexically_normal().string();
}

/// Reads one key into the job, if it is there; a path is made absolute in the table too.
Result<void> read_key(const Key& key, toml::node* value, const std::string& name, TrainJob& job) {
  if (!value) return {};
  if (!store(key.field, *value, job))
    return usage_error(
        fmt::format("{}: {} is {}; it must be {}", origin(*value), key.name, shown(*value), expectation(key.field)));
  if (!std::holds_alternative<PathField>(key.field)) return {};
  std::string& path = value->as_string()->get();
  make_absolute(path, name);
  if (!is_utf8(path))  // by the folder of the job file
    return usage_error(fmt::format("{}: {} is {}; it must be UTF-8", origin(*value), key.name, path));
  store(key.field, *value, job);
  return {};
}

std::string missing(const Key& key) {
  return fmt::format("{} is missing; it must be {} ({})", key.name, expectation(key.field), key.meaning);
}

Result<void> read_devices(toml::table& table, const std::string& name, TrainJob& job) {
  Result<void> result;
  for_each_device(table, [&](toml::table& device) {
    job.devices.emplace_back();
    for (const Key& key : job_keys()) {
      if (!result || parent_of(key.name) != "device") continue;
      toml::node* value = device.get(key.name.substr(key.name.find('.') + 1));
      result = read_key(key, value, name, job);
      if (!value && key.need != Need::optional)
        result = usage_error(fmt::format("{}: {}", origin(device), missing(key)));
    }
  });
  return result;
}

Result<TrainJob> read_job(toml::table& table, const std::string& name) {
  TrainJob job;
  for (const Key& key : job_keys()) {
    if (parent_of(key.name) == "device") continue;
    toml::node* value = find_node(table, key.name);
    REMUDA_TRY(read_key(key, value, name, job));
    const bool needed =
        key.need == Need::required || (key.need == Need::with_table && find_node(table, parent_of(key.name)));
    if (!value && needed && belongs(key, table)) return usage_error(fmt::format("{}: {}", name, missing(key)));
  }
  REMUDA_TRY(read_devices(table, name, job));
  return job;
}

Result<ParsedJob> parse(const std::string& text, const std::string& name, const JobOverrides& overrides) {
  REMUDA_ASSIGN(toml::table table, parse_toml(text, name));
  REMUDA_TRY(apply_overrides(overrides, table));
  expand_short_form(table);
  REMUDA_TRY(check_names(table));
  REMUDA_TRY(settle_kinds(table, name));
  REMUDA_ASSIGN(TrainJob job, read_job(table, name));
  REMUDA_TRY(check_job(job, table, name));
  if (!overrides.devices_follow) REMUDA_TRY(check_counts(job, table, name));
  return ParsedJob{std::move(job), to_text(table)};
}

/// Errors quote keys and values, which may hold anything; a message is one line.
Error on_one_line(Error error) {
  std::ranges::replace_if(error.message, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)); }, '?');
  return error;
}

}  // namespace

Result<ParsedJob> parse_job(const std::string& text, const std::string& name, const JobOverrides& overrides) {
  return parse(text, name, overrides).map_error(on_one_line);
}

}  // namespace remuda::job
