// The JSON Schema and the reference of the inventory's format, made from the field lists. Internal to device.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "device/fields.h"

namespace remuda::fields {

/// One row of the reference: `cores | list of whole numbers, or why it is missing | meaning`.
struct Row {
  std::string key, type, meaning;
  bool required;
};

/// All structs that were met, each with its rows and its schema, in the order of meeting.
struct Catalogue {
  struct Entry {
    std::string name;
    Json schema;
    std::vector<Row> rows;
  };
  std::vector<Entry> entries;

  /// The schema of T; adds T, and what it is made of, to the entries.
  template <typename T>
  Json schema();
  template <typename T>
  static std::string words();

 private:
  template <typename T>
  void add();
};

template <typename T>
struct Describer {
  Catalogue& catalogue;
  Json properties = Json::object();
  Json required = Json::array();
  std::vector<Row> rows;

  template <typename Member>
  void operator()(const char* key, Member&, const char* meaning, bool is_required = false) {
    Json schema = catalogue.schema<std::remove_const_t<Member>>();
    schema["description"] = meaning;
    properties[key] = std::move(schema);
    if (is_required) required.push_back(key);
    rows.push_back({key, Catalogue::words<std::remove_const_t<Member>>(), meaning, is_required});
  }
};

template <typename T>
void Catalogue::add() {
  for (const Entry& entry : entries)
    if (entry.name == T::kName) return;
  const size_t position = entries.size();
  entries.push_back({T::kName, {}, {}});
  Describer<T> describer{*this};
  T value{};
  T::fields(value, describer);
  entries[position].schema = {{"type", "object"}, {"properties", std::move(describer.properties)}};
  if (!describer.required.empty()) entries[position].schema["required"] = std::move(describer.required);
  entries[position].rows = std::move(describer.rows);
}

template <typename T>
Json Catalogue::schema() {
  if constexpr (kIsReading<T>) {
    Json value = schema<std::remove_cvref_t<decltype(std::declval<T>().value())>>();
    Json timed = {{"type", "object"},
                  {"properties", {{"value", value}, {"time_s", {{"type", "number"}}}}},
                  {"required", {"value", "time_s"}}};
    return {{"anyOf", {std::move(value), std::move(timed), {{"$ref", "#/$defs/missing"}}}}};
  } else if constexpr (kIsList<T>) {
    return {{"type", "array"}, {"items", schema<typename T::value_type>()}};
  } else if constexpr (Listed<T>) {
    add<T>();
    return {{"$ref", std::string("#/$defs/") + T::kName}};
  } else if constexpr (std::is_enum_v<T>) {
    Json words = Json::array();
    for (const auto& [_, word] : Words<T>::table) words.push_back(word);
    return {{"enum", std::move(words)}};
  } else {
    const char* type = std::is_same_v<T, std::string> ? "string"
                       : std::is_same_v<T, bool>      ? "boolean"
                       : std::is_integral_v<T>        ? "integer"
                                                      : "number";
    return {{"type", type}};
  }
}

template <typename T>
std::string Catalogue::words() {
  if constexpr (kIsReading<T>)
    return words<std::remove_cvref_t<decltype(std::declval<T>().value())>>() + " *";
  else if constexpr (kIsList<T>)
    return "list of " + words<typename T::value_type>();
  else if constexpr (Listed<T>)
    return std::string("[") + T::kName + "](#" + T::kName + ")";
  else if constexpr (std::is_enum_v<T>)
    return "word";
  else if constexpr (std::is_same_v<T, std::string>)
    return "text";
  else if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else
    return std::is_integral_v<T> ? "whole number" : "number";
}

}  // namespace remuda::fields
