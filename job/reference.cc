#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/table.h"
#include "job/schema.h"
#include "job/train_job.h"

namespace remuda::job {
namespace {

std::string default_of(const Key& key) {
  if (key.need == Need::required) return "required";
  if (key.need == Need::with_table) return "required in " + parent_of(key.name);
  TrainJob job;
  job.devices.emplace_back();
  const std::string text = stored(key.field, job);
  return text.empty() ? "-" : text;
}

std::string meaning_of(const Key& key) {
  if (!key.when) return key.meaning;
  const std::string kinds =
      key.when->words.empty() ? key.when->key : fmt::format("{}", fmt::join(key.when->words, ", "));
  return fmt::format("{}: {}", kinds, key.meaning);
}

}  // namespace

std::string job_reference() {
  Table table({"KEY", "VALUE", "DEFAULT", "MEANING"});
  for (const Key& key : job_keys()) table.add({key.name, expectation(key.field), default_of(key), meaning_of(key)});
  return table.text();
}

}  // namespace remuda::job
