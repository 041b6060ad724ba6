// Packed: structs with a field list as one line of text, for another process of the same build: the values in the order
// of the list, without names. Several times quicker to write and read than JSON, which matters where thousands of
// processes are told each second. No format for files: nothing in it says what it holds.
//
// Each value ends with kEnd, which no text holds. A reading is kUnread, kValue with its value, kTimed with its time and
// value, or kMissing with its reason and detail; a list, the number of its entries and these.
#pragma once

#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/number.h"
#include "base/result.h"
#include "base/text.h"
#include "device/fields.h"

namespace remuda {

struct Inventory;

std::string pack(const Inventory& inventory);
/// An inventory that keeps the rules (device/inventory.h), or an error of one sentence that starts with `where`.
Result<Inventory> unpack_inventory(std::string_view line, std::string_view where);

}  // namespace remuda

namespace remuda::packed {

inline constexpr char kEnd = '\x1f';
inline constexpr std::string_view kUnread = "?", kValue = "=", kTimed = "@", kMissing = "!";

/// A visitor of fields() that writes them behind `line`.
struct Writer {
  std::string& line;

  template <typename T>
  void operator()(const char*, const T& value, const char*, bool = false) {
    write(value);
  }

  template <typename T>
  void write(const T& value) {
    if constexpr (fields::kIsReading<T>) {
      write_reading(value);
    } else if constexpr (fields::kIsList<T>) {
      write(value.size());
      for (const auto& entry : value) write(entry);
    } else if constexpr (fields::Listed<T>) {
      T::fields(value, *this);
    } else if constexpr (std::is_enum_v<T>) {
      put(to_string(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      put(printable(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      put(value ? "1" : "0");
    } else {
      fmt::format_to(std::back_inserter(line), "{}{}", value, kEnd);
    }
  }

 private:
  void put(std::string_view text) {
    line += text;
    line += kEnd;
  }

  template <typename T>
  void write_reading(const Reading<T>& reading) {
    if (reading.has_value()) {
      put(reading.time_s() == 0 ? kValue : kTimed);
      if (reading.time_s() != 0) write(reading.time_s());
      write(reading.value());
    } else if (reading.was_read()) {
      put(kMissing);
      write(reading.missing().reason);
      write(reading.missing().detail);
    } else {
      put(kUnread);
    }
  }
};

/// A visitor of fields() that takes them from the front of `rest`; `is_right` becomes false where they are not there.
struct Reader {
  std::string_view rest;
  bool is_right = true;

  template <typename T>
  void operator()(const char*, T& value, const char*, bool = false) {
    if (is_right) read(value);
  }

  template <typename T>
  void read(T& value) {
    if constexpr (fields::kIsReading<T>)
      read_reading(value);
    else if constexpr (fields::kIsList<T>)
      read_list(value);
    else if constexpr (fields::Listed<T>)
      T::fields(value, *this);
    else
      set(value, parse<T>(take()));
  }

 private:
  std::string_view take() {
    const size_t end = rest.find(kEnd);
    is_right = is_right && end != std::string_view::npos;
    if (!is_right) return {};
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return text;
  }

  template <typename T>
  static std::optional<T> parse(std::string_view text) {
    if constexpr (std::is_enum_v<T>) {
      return from_word<T>(text);
    } else if constexpr (std::is_same_v<T, std::string>) {
      std::string copy(text);
      return printable(copy) == copy && copy.size() <= fields::kLongestText ? std::optional(std::move(copy))
                                                                            : std::nullopt;
    } else if constexpr (std::is_same_v<T, bool>) {
      return text == "1" || text == "0" ? std::optional(text == "1") : std::nullopt;
    } else {
      const auto number = parse_number<T>(text);
      if constexpr (std::is_floating_point_v<T>)
        if (number && !std::isfinite(*number)) return std::nullopt;
      return number;
    }
  }

  template <typename T>
  void set(T& value, std::optional<T> read) {
    is_right = is_right && read.has_value();
    if (is_right) value = *std::move(read);
  }

  /// An entry takes a byte at least.
  template <typename T>
  void read_list(std::vector<T>& list) {
    size_t count = 0;
    read(count);
    is_right = is_right && count <= fields::kLongestList && count <= rest.size();
    list.clear();
    for (size_t i = 0; is_right && i < count; ++i) read(list.emplace_back());
  }

  template <typename T>
  void read_reading(Reading<T>& reading) {
    const std::string_view kind = take();
    if (!is_right) return;
    if (kind == kMissing) {
      Missing missing;
      read(missing.reason);
      read(missing.detail);
      reading = std::move(missing);
    } else if (kind == kUnread) {
      reading = {};
    } else {
      double time_s = 0;
      T value{};
      if (kind == kTimed) read(time_s);
      read(value);
      is_right = is_right && (kind == kTimed || kind == kValue);
      reading = Reading<T>(std::move(value), time_s);
    }
  }
};

template <typename T>
std::string write(const T& value) {
  std::string line;
  Writer{line}.write(value);
  return line;
}

/// Nothing where `line` is not what write() makes of such a struct.
template <typename T>
std::optional<T> read(std::string_view line) {
  T value;
  Reader reader{line};
  reader.read(value);
  return reader.is_right && reader.rest.empty() ? std::optional(std::move(value)) : std::nullopt;
}

}  // namespace remuda::packed
