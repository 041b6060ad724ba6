// The keys of a job file. This one list drives checking, suggestions and the reference. Internal to job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/field.h"

namespace remuda::job {

enum class Need {
  optional,
  required,    ///< wherever it belongs (see Key::when)
  with_table,  ///< as soon as the table it stands in is there
};

/// What a key is for: jobs in which `key` has one of `words`, or any value at all when `words` is empty.
struct Condition {
  std::string key;
  std::vector<std::string> words;
};

struct Key {
  std::string name;  ///< dotted, as in train.epochs; keys of a [[device]] table begin with "device."
  Field field;
  Need need = Need::optional;
  std::optional<Condition> when;  ///< always, unless given
  std::string meaning;            ///< a few words
};

const std::vector<Key>& job_keys();

/// Those of [engine].
std::vector<Key> engine_keys();

/// The key with this name, or null.
const Key* find_key(const std::string& name);

/// Whether it is a table that holds keys: model, data, data.train, ...
bool is_table_name(const std::string& name);

/// "data.train.images" -> "data.train"; "data" -> "".
std::string parent_of(const std::string& name);

}  // namespace remuda::job
