// Writing and reading structs as JSON by their field lists: what each fields() of device.h and inventory.h is for.
//
// A field that is empty (a reading that was not taken, no text, no entries) is left out unless it is required; an
// absent field keeps its default. Internal to device and to stores of its structs.
#pragma once

#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "device/reading.h"

namespace remuda::fields {

template <typename T>
concept Listed = requires { T::kName; };

template <typename T>
inline constexpr bool kIsReading = false;
template <typename T>
inline constexpr bool kIsReading<Reading<T>> = true;

template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;

// ---- writing

template <typename T>
Json write(const T& value);

struct Writer {
  Json json = Json::object();

  template <typename T>
  void operator()(const char* key, const T& value, const char*, bool required = false) {
    if (required || !is_empty(value)) json[key] = write(value);
  }

  template <typename T>
  static bool is_empty(const T& value) {
    if constexpr (kIsReading<T>)
      return !value.was_read();
    else if constexpr (kIsList<T> || std::is_same_v<T, std::string>)
      return value.empty();
    else if constexpr (Listed<T>)
      return write(value).empty();
    else
      return value == T{};
  }
};

template <typename T>
Json write_reading(const Reading<T>& reading) {
  if (!reading.has_value())
    return {{"missing", to_string(reading.missing().reason)}, {"detail", reading.missing().detail}};
  Json value = write(reading.value());
  if (reading.time_s() == 0) return value;
  return {{"value", std::move(value)}, {"time_s", reading.time_s()}};
}

template <typename T>
Json write(const T& value) {
  if constexpr (kIsReading<T>) {
    return write_reading(value);
  } else if constexpr (kIsList<T>) {
    Json list = Json::array();
    for (const auto& entry : value) list.push_back(write(entry));
    return list;
  } else if constexpr (Listed<T>) {
    Writer writer;
    T::fields(value, writer);
    return std::move(writer.json);
  } else if constexpr (std::is_enum_v<T>) {
    return to_string(value);
  } else {
    return value;
  }
}

// ---- reading

inline constexpr size_t kLongestText = 4096;
inline constexpr size_t kLongestList = 65536;

template <typename T>
Result<void> read(const Json& json, const std::string& where, T& value);

inline tl::unexpected<Error> expected(const char* what, const Json& json, const std::string& where) {
  return usage_error(fmt::format("{} must be {}, not {}", where, what, json.type_name()));
}

/// Objects mostly have the fields in the order of the list, as remuda writes them, so that each is looked for behind
/// the one before it first; and where a value stands is written out for errors only. A pool has thousands of records.
struct Reader {
  const Json& json;
  const std::string& where;
  Result<void> outcome;
  Json::const_iterator next = json.begin();

  template <typename T>
  void operator()(const char* key, T& value, const char*, bool required = false) {
    if (!outcome) return;
    const auto found = next != json.end() && next.key() == key ? next : json.find(key);
    if (found == json.end()) {
      if (required) outcome = usage_error(fmt::format("{} lacks '{}'", where, key));
      return;
    }
    next = std::next(found);
    outcome = read(*found, key, value);
    if (!outcome) outcome.error().message.insert(0, where + ".");
  }
};

inline Result<void> read_text_value(const Json& json, const std::string& where, std::string& value) {
  if (!json.is_string()) return expected("a text", json, where);
  value = json.get<std::string>();
  if (value.size() > kLongestText) return usage_error(fmt::format("{} is longer than {} bytes", where, kLongestText));
  if (printable(value) != value) return usage_error(fmt::format("{} holds control characters", where));
  return {};
}

template <typename T>
Result<void> read_number(const Json& json, const std::string& where, T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!json.is_number()) return expected("a number", json, where);
    value = json.get<T>();
    if (!std::isfinite(value)) return usage_error(fmt::format("{} is out of range", where));
  } else {
    if (!json.is_number_integer()) return expected("a whole number", json, where);
    const bool fits =
        json.is_number_unsigned() ? std::in_range<T>(json.get<uint64_t>()) : std::in_range<T>(json.get<int64_t>());
    if (!fits) return usage_error(fmt::format("{} is out of range", where));
    value = json.get<T>();
  }
  return {};
}

template <typename T>
Result<void> read_word(const Json& json, const std::string& where, T& value) {
  if (!json.is_string()) return expected("a text", json, where);
  const auto known = from_word<T>(json.get_ref<const std::string&>());
  if (known) return value = *known, Result<void>{};
  std::string words;
  for (const auto& [_, word] : Words<T>::table) words += fmt::format("{}{}", words.empty() ? "" : ", ", word);
  return usage_error(fmt::format("{} must be one of {}", where, words));
}

template <typename T>
Result<void> read_list(const Json& json, const std::string& where, std::vector<T>& list) {
  if (!json.is_array()) return expected("a list", json, where);
  if (json.size() > kLongestList)
    return usage_error(fmt::format("{} has {} entries; at most {} are read", where, json.size(), kLongestList));
  list.assign(json.size(), T{});
  for (size_t i = 0; i < json.size(); ++i) {
    T entry{};
    REMUDA_TRY(read(json[i], fmt::format("{}[{}]", where, i), entry));
    list[i] = std::move(entry);
  }
  return {};
}

inline Result<void> read_missing(const Json& json, const std::string& where, Missing& missing) {
  if (auto outcome = read_word(json.at("missing"), where + ".missing", missing.reason); !outcome) return outcome;
  const auto detail = json.find("detail");
  return detail == json.end() ? Result<void>{} : read_text_value(*detail, where + ".detail", missing.detail);
}

template <typename T>
Result<void> read_reading(const Json& json, const std::string& where, Reading<T>& reading) {
  if (json.is_object() && json.contains("missing")) {
    Missing missing;
    REMUDA_TRY(read_missing(json, where, missing));
    reading = Reading<T>(std::move(missing));
    return {};
  }
  T value{};
  double time_s = 0;
  const bool timed = json.is_object() && json.contains("value");
  if (timed && json.contains("time_s")) REMUDA_TRY(read_number(json.at("time_s"), where + ".time_s", time_s));
  REMUDA_TRY(read(timed ? json.at("value") : json, where, value));
  reading = Reading<T>(std::move(value), time_s);
  return {};
}

template <typename T>
Result<void> read(const Json& json, const std::string& where, T& value) {
  if constexpr (kIsReading<T>) {
    return read_reading(json, where, value);
  } else if constexpr (kIsList<T>) {
    return read_list(json, where, value);
  } else if constexpr (Listed<T>) {
    if (!json.is_object()) return expected("an object", json, where);
    Reader reader{json, where};
    T::fields(value, reader);
    return reader.outcome;
  } else if constexpr (std::is_enum_v<T>) {
    return read_word(json, where, value);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return expected("true or false", json, where);
    value = json.get<bool>();
    return {};
  } else if constexpr (std::is_same_v<T, std::string>) {
    return read_text_value(json, where, value);
  } else {
    return read_number(json, where, value);
  }
}

}  // namespace remuda::fields
