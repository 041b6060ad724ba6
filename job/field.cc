#include "job/field.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace remuda::job {
namespace {

std::optional<int> integer(const toml::node& value, const Range& range) {
  const auto* found = value.as_integer();
  if (!found || !range.contains(static_cast<double>(found->get()))) return std::nullopt;
  return static_cast<int>(found->get());
}

std::optional<double> number(const toml::node& value, const Range& range) {
  if (!value.is_number()) return std::nullopt;
  const double found =
      value.is_integer() ? static_cast<double>(value.as_integer()->get()) : value.as_floating_point()->get();
  return range.contains(found) ? std::optional(found) : std::nullopt;
}

std::optional<uint64_t> seed(const toml::node& value) {
  const auto* found = value.as_integer();
  if (!found || found->get() < 0) return std::nullopt;
  return static_cast<uint64_t>(found->get());
}

std::optional<std::string> text(const toml::node& value) {
  const auto* found = value.as_string();
  if (!found || found->get().empty()) return std::nullopt;
  return found->get();
}

std::optional<bool> flag(const toml::node& value) {
  const auto* found = value.as_boolean();
  return found ? std::optional(found->get()) : std::nullopt;
}

template <typename T, typename ReadOne, typename... Each>
std::optional<std::vector<T>> list(const toml::node& value, ReadOne read_one, const Each&... each) {
  if (!value.is_array()) return std::nullopt;
  std::vector<T> all;
  for (const toml::node& element : *value.as_array()) {
    const std::optional<T> one = read_one(element, each...);
    if (!one) return std::nullopt;
    all.push_back(*one);
  }
  return all;
}

template <typename T>
bool put(T& member, const std::optional<T>& value) {
  if (value) member = *value;
  return value.has_value();
}

struct Store {
  const toml::node& value;
  TrainJob& job;

  bool operator()(const IntegerField& field) { return put(field.member(job), integer(value, field.range)); }
  bool operator()(const SeedField& field) { return put(field.member(job), seed(value)); }
  bool operator()(const NumberField& field) { return put(field.member(job), number(value, field.range)); }
  bool operator()(const PathField& field) { return put(field.member(job), text(value)); }
  bool operator()(const DeviceIdField& field) { return put(field.member(job), text(value)); }
  bool operator()(const TextField& field) { return put(field.member(job), text(value)); }
  bool operator()(const DeviceIdsField& field) { return put(field.member(job), list<std::string>(value, text)); }
  bool operator()(const FlagField& field) { return put(field.member(job), flag(value)); }
  bool operator()(const IntegersField& field) { return put(field.member(job), list<int>(value, integer, field.each)); }
  bool operator()(const NumbersField& field) { return put(field.member(job), list<double>(value, number, field.each)); }
  bool operator()(const ChoiceField& field) {
    const auto word = std::ranges::find(field.words, text(value).value_or(""));
    if (word == field.words.end()) return false;
    field.set(job, word - field.words.begin());
    return true;
  }
};

std::string bounds(const Range& range) {
  if (!range.above_low && !range.below_high && range.high != kNoLimit)
    return fmt::format("from {:.0f} to {:.0f}", range.low, range.high);
  std::string words = fmt::format("{} {}", range.above_low ? "above" : "of at least", range.low);
  if (range.high != kNoLimit) words += fmt::format(" and {} {}", range.below_high ? "below" : "at most", range.high);
  return words;
}

struct Expect {
  std::string operator()(const IntegerField& field) { return "an integer " + bounds(field.range); }
  std::string operator()(const SeedField&) { return "an integer of at least 0"; }
  std::string operator()(const NumberField& field) { return "a number " + bounds(field.range); }
  std::string operator()(const PathField&) { return "a path"; }
  std::string operator()(const DeviceIdField&) { return "a device id such as \"cpu:0\""; }
  std::string operator()(const TextField& field) { return fmt::format("a text such as \"{}\"", field.example); }
  std::string operator()(const DeviceIdsField&) { return "a list of devices such as [\"gpu:0\"]"; }
  std::string operator()(const FlagField&) { return "true or false"; }
  std::string operator()(const IntegersField& field) { return "a list of integers " + bounds(field.each); }
  std::string operator()(const NumbersField& field) { return "a list of numbers " + bounds(field.each); }
  std::string operator()(const ChoiceField& field) { return fmt::format("one of {}", fmt::join(field.words, ", ")); }
};

struct Show {
  TrainJob& job;

  template <typename AnyField>
  std::string operator()(const AnyField& field) {
    return fmt::format("{}", field.member(job));
  }
  std::string operator()(const NumbersField& field) { return list(field.member(job)); }
  std::string operator()(const DeviceIdsField& field) { return list(field.member(job)); }
  std::string operator()(const ChoiceField& field) { return field.get(job); }

  template <typename T>
  static std::string list(const std::vector<T>& values) {
    return values.empty() ? "" : fmt::format("{}", values);
  }
};

}  // namespace

bool Range::contains(double value) const {
  if (!std::isfinite(value)) return false;
  const bool low_enough = below_high ? value < high : value <= high;
  return low_enough && (above_low ? value > low : value >= low);
}

bool store(const Field& field, const toml::node& value, TrainJob& job) { return std::visit(Store{value, job}, field); }

std::string expectation(const Field& field) { return std::visit(Expect{}, field); }

std::string stored(const Field& field, TrainJob& job) { return std::visit(Show{job}, field); }

}  // namespace remuda::job
