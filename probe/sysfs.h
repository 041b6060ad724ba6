// Files of the kernel, one fact each: small, and any of them may be missing, forbidden, or gone between two reads.
//
// A reading that a file does not give has a reason, one sentence that names the file: denied (EACCES, EPERM), lost
// (EIO, ENODEV, ENXIO), else unsupported. Reads never wait (regular files only) and are bounded in size and number.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/reading.h"

namespace remuda::probe::sysfs {

inline constexpr size_t kMaxBytes = 64 << 10;  ///< of a file; a larger one is refused
inline constexpr size_t kMaxEntries = 4096;    ///< of a folder; further entries are ignored

/// The file's text without white space around it; may hold lines and any other bytes.
Reading<std::string> read(const std::string& path);
/// The same as one line fit for a terminal; unsupported when it is empty.
Reading<std::string> read_word(const std::string& path);
/// A decimal number within [low, high]; unsupported when the file holds anything else.
Reading<int64_t> read_integer(const std::string& path, int64_t low = 0,
                              int64_t high = std::numeric_limits<int64_t>::max());

/// A list of numbers such as "0-2,5"; unsupported when the file holds anything else.
Reading<std::vector<int>> read_index_list(const std::string& path);

/// Names in a folder, sorted; none when it cannot be read.
std::vector<std::string> entries(const std::string& folder, size_t most = kMaxEntries);
/// The numbers of a folder's entries that are called `prefix` and a decimal number, ascending.
std::vector<int> numbered(const std::string& folder, std::string_view prefix);
bool exists(const std::string& path);
/// The path with all symbolic links followed; empty when it leads nowhere.
std::string real_path(const std::string& path);
/// The last name of the path a symbolic link leads to; empty when there is no such link.
std::string link_name(const std::string& path);

/// "0-2,5" -> {0,1,2,5}; nothing when it is not such a list, or has a number above 65535.
std::optional<std::vector<int>> index_list(std::string_view text);

/// The reading with `change` applied to its value.
template <typename T, typename Change>
auto map(const Reading<T>& reading, Change change) -> Reading<decltype(change(reading.value()))> {
  if (!reading.has_value()) return reading.missing();
  return change(reading.value());
}

inline Reading<int> to_int(const Reading<int64_t>& reading) {
  return map(reading, [](int64_t value) { return static_cast<int>(value); });
}
inline Reading<double> scaled(const Reading<int64_t>& reading, double unit) {
  return map(reading, [unit](int64_t value) { return static_cast<double>(value) * unit; });
}

/// A visitor of fields() (device/device.h) that sets the reason of each reading that was not taken, at any depth.
struct FillUnread {
  Missing reason;

  template <typename T>
  void operator()(const char*, Reading<T>& reading, const char*, bool = false) {
    if (!reading.was_read()) reading = reason;
  }
  template <typename T>
  void operator()(const char*, T& field, const char*, bool = false) {
    if constexpr (requires { T::kName; }) T::fields(field, *this);
  }
};

}  // namespace remuda::probe::sysfs
