// Field: how one key's value is checked, stored in a TrainJob and described. Internal to job.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <toml++/toml.h>
#include <variant>
#include <vector>

#include "job/train_job.h"

namespace remuda::job {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Range {
  double low;
  double high = kNoLimit;
  bool above_low = false;   ///< low itself is not in the range
  bool below_high = false;  ///< high itself is not in the range

  bool contains(double value) const;
};

/// Where in the job a value lives. Keys of [[device]] are those of the last device.
template <typename T>
using Member = T& (*)(TrainJob&);

struct IntegerField {
  Member<int> member;
  Range range;
};
struct SeedField {
  Member<uint64_t> member;
};
struct NumberField {
  Member<double> member;
  Range range;
};
struct PathField {
  Member<std::string> member;
  enum class Use {
    read,     ///< a file or folder that the run reads
    written,  ///< a file that it writes
    filled,   ///< a folder that it writes new files into
    kept      ///< a folder that it keeps its own files in, and reads them from
  };
  Use use = Use::read;
};
struct DeviceIdField {
  Member<std::string> member;
};
struct TextField {
  Member<std::string> member;
  const char* example;  ///< "24GiB"
};
struct DeviceIdsField {
  Member<std::vector<std::string>> member;
};
struct FlagField {
  Member<bool> member;
};
struct IntegersField {
  Member<std::vector<int>> member;
  Range each;
};
struct NumbersField {
  Member<std::vector<double>> member;
  Range each;
};
struct ChoiceField {
  std::vector<std::string> words;
  std::function<void(TrainJob&, size_t)> set;  ///< takes an index of `words`
  std::function<std::string(TrainJob&)> get;   ///< one of `words`, or empty
};

/// A choice whose words stand in the order of the enumerators.
template <typename Enum>
ChoiceField choice(std::vector<std::string> words, Enum& (*member)(TrainJob&)) {
  return {words, [member](TrainJob& job, size_t index) { member(job) = static_cast<Enum>(index); },
          [member, words](TrainJob& job) { return words.at(static_cast<size_t>(member(job))); }};
}

using Field = std::variant<IntegerField, SeedField, NumberField, PathField, DeviceIdField, TextField, DeviceIdsField,
                           FlagField, IntegersField, NumbersField, ChoiceField>;

/// Stores the value; false, with the job unchanged, when its type or range is wrong.
bool store(const Field& field, const toml::node& value, TrainJob& job);

/// What a right value is, as in "it must be ...": "an integer from 1 to 1024".
std::string expectation(const Field& field);

/// The value `job` has, as it is written in a job file; empty for an empty text.
std::string stored(const Field& field, TrainJob& job);

}  // namespace remuda::job
